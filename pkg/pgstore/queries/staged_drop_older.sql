WITH vectors AS (
    DELETE FROM staged_vectors WHERE document_key = $1 AND version < $2
)
DELETE FROM staged_chunks WHERE document_key = $1 AND version < $2
