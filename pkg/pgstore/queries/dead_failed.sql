SELECT d.status = 'Failed' FROM documents d WHERE d.key = $1 AND d.version = $2 AND d.kb_id = $3
