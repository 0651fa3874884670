UPDATE jobs SET rate_limit = $2, updated_at = now() WHERE id = $1
