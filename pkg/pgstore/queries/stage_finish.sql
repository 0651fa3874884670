UPDATE document_versions SET chunks = $4, tokens = $5, warnings = $6, parsed_title = $7,
    reused = (SELECT count(*) FROM staged_vectors s WHERE s.document_key = $1 AND s.version = $2 AND s.generation = $3)
WHERE document_key = $1 AND version = $2
