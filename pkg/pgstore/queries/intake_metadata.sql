UPDATE documents SET live_metadata = $2, live_oss_key = $3, order_ns = $4, order_seq = $5, updated_at = now()
WHERE key = $1
