UPDATE document_splits SET lines = $3 WHERE document_key = $1 AND version = $2 AND state = 'splitting'
