-- BETWEEN and ORDER BY leave the planner one index. With an equality it may think as well of one on the generation alone.
INSERT INTO staged_vectors (generation, document_key, version, ordinal, embedding)
SELECT w.generation, w.key, w.version, w.ordinal, known.embedding
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::int[], $5::bytea[]) w(generation, key, version, ordinal, hash)
CROSS JOIN LATERAL (
    SELECT c.embedding FROM chunks c
    WHERE c.hash BETWEEN w.hash AND w.hash AND c.embedding IS NOT NULL
    ORDER BY c.hash
    LIMIT 1
) known
ON CONFLICT DO NOTHING
