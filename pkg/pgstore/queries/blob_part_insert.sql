INSERT INTO blob_parts (kb_id, sha256, part, data) VALUES ($1, $2, $3, $4)
ON CONFLICT (kb_id, sha256, part) DO NOTHING
