WITH open AS (
    DELETE FROM document_builds WHERE generation = $1 AND state = 'pending' RETURNING document_key, version, generation
), vectors AS (
    DELETE FROM staged_vectors s USING open o WHERE s.document_key = o.document_key AND s.version = o.version AND s.generation = o.generation
)
DELETE FROM staged_chunks s USING open o WHERE s.document_key = o.document_key AND s.version = o.version AND s.generation = o.generation
