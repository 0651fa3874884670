SELECT array_agg(nextval('chunk_ids')) FROM generate_series(1, $1)
