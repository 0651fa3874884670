INSERT INTO generations (kb_id, state, space, dims, parser, chunking, analyzer)
VALUES ($1, 'live', $2, $3, $4, $5, $6)
RETURNING id
