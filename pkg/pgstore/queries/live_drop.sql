WITH gone AS (
    DELETE FROM chunks WHERE generation = $1 AND document_key = ANY($2) RETURNING chunk_id, lex_len
)
INSERT INTO lex_tombstone (generation, chunk_id, len)
SELECT $1, chunk_id, lex_len FROM gone
