SELECT id, kb, subspace, doc_id, coalesce(version, 0), stage, error, attempts, subject, octet_length(body), state, created_at, headers, body
FROM dead_letters
WHERE tenant = $1 AND id = $2
