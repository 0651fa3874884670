UPDATE document_splits SET state = 'waiting', lines = $3, remove_below = CASE WHEN $4 THEN $2 ELSE remove_below END
WHERE document_key = $1 AND version = $2 AND state = 'splitting'
