UPDATE jobs SET gate_result = $3, updated_at = now() WHERE id = $1 AND fence = $2
