UPDATE documents SET live_metadata = $2, live_typed = $3, live_oss_key = $4, order_ns = $5, order_seq = $6, updated_at = now()
WHERE key = $1
