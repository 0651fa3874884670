WITH v AS (
    UPDATE document_versions SET chunks = NULL, reused = 0, run = run + 1
    WHERE document_key = $1 AND version = $2 AND chunks IS NOT NULL
    RETURNING document_key, version, run
), c AS (
    DELETE FROM staged_chunks s USING v WHERE s.document_key = v.document_key AND s.version = v.version
), e AS (
    DELETE FROM staged_vectors s USING v WHERE s.document_key = v.document_key AND s.version = v.version
)
SELECT run FROM v
