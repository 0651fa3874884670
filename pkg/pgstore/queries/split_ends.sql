SELECT e.document_key, e.version, e.status, e.lines, e.error, d.subspace, d.doc_id, k.id, k.tenant, k.name
FROM split_ends e
JOIN documents d ON d.key = e.document_key
JOIN knowledge_bases k ON k.id = d.kb_id
WHERE (e.document_key, e.version) > ($1, $2)
ORDER BY e.document_key, e.version
LIMIT $3
