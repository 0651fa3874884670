INSERT INTO generations (kb_id, state, space, dims, parser, chunking, analyzer, fingerprint)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
RETURNING id
