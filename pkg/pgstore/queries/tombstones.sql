SELECT chunk_id FROM lex_tombstone WHERE generation = $1 ORDER BY chunk_id
