SELECT chunks, rows FROM staged_chunks
WHERE document_key = $1 AND version = $2 AND generation = $3 AND layout = $4
ORDER BY ordinal
