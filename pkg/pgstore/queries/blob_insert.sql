INSERT INTO blobs (kb_id, sha256, size_bytes) VALUES ($1, $2, $3)
ON CONFLICT (kb_id, sha256) DO NOTHING
