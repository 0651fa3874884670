DELETE FROM lex_tombstone WHERE generation = $1 AND chunk_id = ANY($2)
