UPDATE document_versions SET chunks = $3, reused = $4, tokens = $5, warnings = $6, parsed_title = $7
WHERE document_key = $1 AND version = $2
