WITH p AS (DELETE FROM lex_posting WHERE generation = $1 AND seg = ANY($2))
DELETE FROM lex_segment WHERE generation = $1 AND seg = ANY($2)
