INSERT INTO staged_vectors (generation, document_key, version, ordinal, embedding)
SELECT $1, $2, $3, w.ordinal, known.embedding
FROM unnest($4::int[], $5::bytea[]) w(ordinal, hash)
CROSS JOIN LATERAL (
    SELECT c.embedding FROM chunks c
    WHERE c.hash = w.hash AND c.embedding IS NOT NULL
    LIMIT 1
) known
ON CONFLICT DO NOTHING
