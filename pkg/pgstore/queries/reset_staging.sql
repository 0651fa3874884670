-- Only of a version that is still being worked on, whatever it waits for. The document first, as everywhere.
WITH d AS MATERIALIZED (
    SELECT key, version FROM documents WHERE key = $1 AND version = $2 AND status = 'Indexing' FOR UPDATE
), v AS (
    UPDATE document_versions v SET chunks = NULL, reused = 0, run = v.run + 1
    FROM d WHERE v.document_key = d.key AND v.version = d.version AND v.chunks IS NOT NULL
    RETURNING v.document_key, v.version, v.run
), c AS (
    DELETE FROM staged_chunks s USING v WHERE s.document_key = v.document_key AND s.version = v.version
), e AS (
    DELETE FROM staged_vectors s USING v WHERE s.document_key = v.document_key AND s.version = v.version
)
SELECT run FROM v
