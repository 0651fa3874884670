-- The first condition on the key is for the index, which knows no sources. LATERAL and OFFSET 0 leave the planner one way: from
-- document to document, and no further than the page.
SELECT k.tenant, k.name, k.id, v.generation, d.subspace, d.doc_id, d.key, d.version, v.run, r.submit_id, r.source
FROM documents d
CROSS JOIN LATERAL (SELECT * FROM knowledge_bases k WHERE k.id = d.kb_id AND k.deleted_at IS NOT NULL OFFSET 0) k
CROSS JOIN LATERAL (SELECT * FROM document_versions v WHERE v.document_key = d.key AND v.version = d.version OFFSET 0) v
CROSS JOIN LATERAL (
    SELECT * FROM document_receipts r
    WHERE r.document_key = d.key AND r.version = d.version AND r.outcome IN ('accepted', 'unchanged')
    OFFSET 0
) r
WHERE d.status IN ('Pending', 'Indexing') AND d.key >= $1 AND (d.key, r.source) > ($1, $2)
ORDER BY d.key, r.source
LIMIT $3
