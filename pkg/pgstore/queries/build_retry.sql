UPDATE document_builds SET state = 'pending', queued = false, run = run + 1, chunks = NULL, error = NULL, wanted_at = now(), updated_at = now()
WHERE generation = $1 AND state = 'failed'
