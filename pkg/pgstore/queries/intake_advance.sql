UPDATE documents SET version = $2, status = $3, order_ns = $4, order_seq = $5, updated_at = now()
WHERE key = $1
