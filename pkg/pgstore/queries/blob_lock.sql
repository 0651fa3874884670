SELECT b.kb_id FROM unnest($1::bigint[], $2::bytea[]) w(kb_id, sha256)
JOIN blobs b ON b.kb_id = w.kb_id AND b.sha256 = w.sha256
ORDER BY b.kb_id, b.sha256
FOR KEY SHARE OF b
