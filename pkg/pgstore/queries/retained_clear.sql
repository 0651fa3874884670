UPDATE jobs SET retained_until = NULL, updated_at = now() WHERE id = $1 AND state = 'done'
