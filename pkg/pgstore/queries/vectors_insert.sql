-- The lock waits for a swap or delete that is under way, and then looks again: late vectors would stay behind.
WITH fenced AS MATERIALIZED (
    SELECT d.key FROM documents d WHERE d.key = $2 AND d.version = $3 AND d.status = 'Indexing' FOR SHARE
)
INSERT INTO staged_vectors (generation, document_key, version, ordinal, embedding)
SELECT $1, $2, $3, w.ordinal, w.embedding
FROM unnest($4::int[], $5::halfvec[]) w(ordinal, embedding)
WHERE EXISTS (SELECT 1 FROM fenced)
ON CONFLICT DO NOTHING
