SELECT ordinal FROM staged_vectors WHERE document_key = $1 AND version = $2 AND generation = $3
