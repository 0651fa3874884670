WITH failed AS (
    UPDATE document_builds SET state = 'failed', error = $4, attempts = $5, updated_at = now()
    WHERE document_key = $1 AND version = $2 AND generation = $3 AND state = 'pending'
    RETURNING document_key, version, generation
), vectors AS (
    DELETE FROM staged_vectors s USING failed f WHERE s.document_key = f.document_key AND s.version = f.version AND s.generation = f.generation
)
DELETE FROM staged_chunks s USING failed f WHERE s.document_key = f.document_key AND s.version = f.version AND s.generation = f.generation
