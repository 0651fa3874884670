INSERT INTO blobs (kb_id, sha256, size_bytes)
SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::bigint[]) w(kb_id, sha256, size_bytes)
ORDER BY w.kb_id, w.sha256
ON CONFLICT (kb_id, sha256) DO NOTHING
