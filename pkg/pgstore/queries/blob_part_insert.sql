INSERT INTO blob_parts (kb_id, sha256, part, data)
SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::int[], $4::bytea[]) w(kb_id, sha256, part, data)
ORDER BY w.kb_id, w.sha256, w.part
ON CONFLICT (kb_id, sha256, part) DO NOTHING
