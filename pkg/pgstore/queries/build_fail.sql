UPDATE document_builds SET state = 'failed', error = $4, attempts = $5, updated_at = now()
WHERE document_key = $1 AND version = $2 AND generation = $3 AND state = 'pending'
