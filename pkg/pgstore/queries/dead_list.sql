SELECT id, kb, subspace, doc_id, coalesce(version, 0), stage, error, attempts, subject, octet_length(body), state, created_at
FROM dead_letters
WHERE tenant = $1 AND ($2 = '' OR kb = $2) AND ($3 = '' OR stage = $3) AND state = $4 AND id < $5
ORDER BY id DESC
LIMIT $6
