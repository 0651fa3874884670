-- The document first, as everywhere: a swap that is under way has counted what is staged.
WITH d AS MATERIALIZED (
    SELECT key FROM documents WHERE key = $1 FOR UPDATE
), b AS (
    UPDATE document_builds b SET chunks = NULL, reused = 0, run = b.run + 1, updated_at = now()
    FROM d WHERE b.document_key = d.key AND b.version = $2 AND b.generation = $3 AND b.state = 'pending' AND b.chunks IS NOT NULL
    RETURNING b.document_key, b.version, b.generation, b.run
), c AS (
    DELETE FROM staged_chunks s USING b WHERE s.document_key = b.document_key AND s.version = b.version AND s.generation = b.generation
), e AS (
    DELETE FROM staged_vectors s USING b WHERE s.document_key = b.document_key AND s.version = b.version AND s.generation = b.generation
)
SELECT run FROM b
