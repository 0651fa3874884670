INSERT INTO staged_vectors (generation, document_key, version, ordinal, embedding)
SELECT w.generation, w.key, w.version, w.ordinal, known.embedding
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::int[], $5::bytea[]) w(generation, key, version, ordinal, hash)
CROSS JOIN LATERAL (
    SELECT c.embedding FROM chunks c
    WHERE c.hash = w.hash AND c.embedding IS NOT NULL
    LIMIT 1
) known
ON CONFLICT DO NOTHING
