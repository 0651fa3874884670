UPDATE dead_letters SET state = $3, updated_at = now()
WHERE tenant = $1 AND id = $2 AND (state = 'open' OR state = $3)
