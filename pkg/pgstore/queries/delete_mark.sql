-- One that is removed as a line keeps its parent until that is told.
UPDATE documents SET version = $2, status = $5, order_ns = $3, order_seq = $4, live_version = NULL,
    live_title = '', live_oss_key = '', live_metadata = '{}', live_typed = '{}',
    parent_key = CASE WHEN $6 THEN parent_key END, parent_version = CASE WHEN $6 THEN parent_version END,
    parent_line = CASE WHEN $6 THEN parent_line END, updated_at = now()
WHERE key = $1
