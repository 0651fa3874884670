WITH t AS (DELETE FROM lex_tombstone WHERE generation = $1)
DELETE FROM lex_segment WHERE generation = $1
