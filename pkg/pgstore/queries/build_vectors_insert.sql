-- As for versions, the locks wait for what is under way and look again; the document first, as everywhere.
WITH d AS MATERIALIZED (
    SELECT d.key, d.live_version FROM documents d WHERE d.key = $2 AND d.live_version = $3 FOR SHARE
), fenced AS MATERIALIZED (
    SELECT b.generation FROM d
    CROSS JOIN LATERAL (
        SELECT b.generation FROM document_builds b
        JOIN generations g ON g.id = b.generation AND g.state <> 'dead'
        WHERE b.document_key = d.key AND b.version = d.live_version AND b.generation = $1 AND b.state = 'pending'
        FOR SHARE OF b
    ) b
)
INSERT INTO staged_vectors (generation, document_key, version, ordinal, embedding)
SELECT $1, $2, $3, w.ordinal, w.embedding
FROM unnest($4::int[], $5::halfvec[]) w(ordinal, embedding)
WHERE EXISTS (SELECT 1 FROM fenced)
ON CONFLICT DO NOTHING
