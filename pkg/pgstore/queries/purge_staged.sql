WITH v AS (DELETE FROM staged_vectors WHERE document_key IN (SELECT key FROM documents WHERE kb_id = $1))
DELETE FROM staged_chunks WHERE document_key IN (SELECT key FROM documents WHERE kb_id = $1)
