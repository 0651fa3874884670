WITH b AS (
    UPDATE document_builds SET chunks = NULL, reused = 0, run = run + 1, updated_at = now()
    WHERE document_key = $1 AND version = $2 AND generation = $3 AND state = 'pending' AND chunks IS NOT NULL
    RETURNING document_key, version, generation, run
), c AS (
    DELETE FROM staged_chunks s USING b WHERE s.document_key = b.document_key AND s.version = b.version AND s.generation = b.generation
), e AS (
    DELETE FROM staged_vectors s USING b WHERE s.document_key = b.document_key AND s.version = b.version AND s.generation = b.generation
)
SELECT run FROM b
