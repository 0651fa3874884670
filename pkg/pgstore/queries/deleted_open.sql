SELECT k.tenant, k.name, k.id, v.generation, d.subspace, d.doc_id, d.key, d.version, v.run, r.submit_id, r.source
FROM knowledge_bases k
JOIN documents d ON d.kb_id = k.id AND d.status IN ('Pending', 'Indexing')
JOIN document_versions v ON v.document_key = d.key AND v.version = d.version
JOIN document_receipts r ON r.document_key = d.key AND r.version = d.version AND r.outcome IN ('accepted', 'unchanged')
WHERE k.deleted_at IS NOT NULL AND (d.key, r.source) > ($1, $2)
ORDER BY d.key, r.source
LIMIT $3
