INSERT INTO jobs (tenant, kb, kb_id, kind, state, source, target, config, selector, rate_limit, max_failed, manual, gate, retain_seconds, estimate)
VALUES ($1, $2, $3, $4, 'running', $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
RETURNING id
