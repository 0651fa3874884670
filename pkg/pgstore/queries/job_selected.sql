UPDATE jobs SET selected = true, updated_at = now() WHERE id = $1 AND fence = $2
