UPDATE document_versions v SET run = v.run + 1, error = NULL, attempts = 0
FROM documents d, knowledge_bases k
WHERE d.key = v.document_key AND d.version = v.version AND d.kb_id = k.id
  AND k.tenant = $1 AND k.name = $2 AND k.deleted_at IS NULL
  AND d.subspace = $3 AND d.doc_id = $4 AND d.version = $5 AND d.status = 'Failed'
RETURNING d.key, d.kb_id, v.generation, v.run
