UPDATE document_versions SET run = run + 1
WHERE document_key = $1 AND version = $2 AND run = $3
RETURNING run
