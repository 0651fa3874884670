-- As reset_staging, of a build.
WITH b AS (
    UPDATE document_builds b SET chunks = NULL, reused = 0, run = b.run + 1, updated_at = now()
    WHERE b.document_key = $1 AND b.version = $2 AND b.generation = $4 AND b.state = 'pending' AND b.chunks > (
        SELECT coalesce(sum(s.chunks), 0) FROM staged_chunks s
        WHERE s.document_key = $1 AND s.version = $2 AND s.generation = $4 AND s.layout = $3
    )
    RETURNING b.document_key, b.version, b.generation, b.run
), c AS (
    DELETE FROM staged_chunks s USING b WHERE s.document_key = b.document_key AND s.version = b.version AND s.generation = b.generation
), e AS (
    DELETE FROM staged_vectors s USING b WHERE s.document_key = b.document_key AND s.version = b.version AND s.generation = b.generation
)
SELECT run FROM b
