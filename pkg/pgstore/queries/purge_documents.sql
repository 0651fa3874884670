DELETE FROM documents WHERE key IN (SELECT key FROM documents WHERE kb_id = $1 LIMIT 5000)
