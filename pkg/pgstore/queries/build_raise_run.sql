UPDATE document_builds SET run = run + 1, updated_at = now()
WHERE document_key = $1 AND version = $2 AND generation = $3 AND run = $4 AND state = 'pending'
RETURNING run
