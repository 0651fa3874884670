WITH fenced AS MATERIALIZED (
    SELECT b.generation FROM document_builds b
    JOIN generations g ON g.id = b.generation AND g.state <> 'dead'
    WHERE b.document_key = $2 AND b.version = $3 AND b.generation = $1 AND b.state = 'pending'
    FOR SHARE OF b
)
INSERT INTO staged_vectors (generation, document_key, version, ordinal, embedding)
SELECT $1, $2, $3, w.ordinal, w.embedding
FROM unnest($4::int[], $5::halfvec[]) w(ordinal, embedding)
WHERE EXISTS (SELECT 1 FROM fenced)
ON CONFLICT DO NOTHING
