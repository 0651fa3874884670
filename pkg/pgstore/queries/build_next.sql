SELECT k.tenant, k.name, k.id, d.subspace, d.doc_id, d.key, b.version, b.run
FROM document_builds b
JOIN documents d ON d.key = b.document_key
JOIN knowledge_bases k ON k.id = d.kb_id AND k.deleted_at IS NULL
WHERE b.generation = $1 AND b.state = 'pending' AND NOT b.queued
ORDER BY b.document_key
LIMIT $2
