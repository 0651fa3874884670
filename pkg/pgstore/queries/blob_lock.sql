SELECT w.kb_id
FROM (SELECT * FROM unnest($1::bigint[], $2::bytea[]) w(kb_id, sha256) ORDER BY w.kb_id, w.sha256) w
CROSS JOIN LATERAL (SELECT 1 FROM blobs b WHERE b.kb_id = w.kb_id AND b.sha256 = w.sha256 FOR KEY SHARE) b
