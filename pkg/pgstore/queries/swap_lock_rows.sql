SELECT d.key FROM documents d WHERE d.key = ANY($1) ORDER BY d.key FOR UPDATE
