UPDATE documents SET version = $2, status = 'Deleted', order_ns = $3, order_seq = $4, live_version = NULL,
    live_title = '', live_oss_key = '', live_metadata = '{}', live_typed = '{}', updated_at = now()
WHERE key = $1
