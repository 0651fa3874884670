DELETE FROM document_versions
WHERE document_key = $1 AND version < $2 AND version IS DISTINCT FROM $3
