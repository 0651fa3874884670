INSERT INTO dead_letters (source, tenant, kb, kb_id, subspace, doc_id, version, stage, error, attempts, subject, headers, body)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
ON CONFLICT (source) DO NOTHING
RETURNING id
