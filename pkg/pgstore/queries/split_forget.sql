UPDATE documents SET parent_key = NULL, parent_version = NULL, parent_line = NULL
WHERE key = ANY($1) AND parent_key = $2 AND status = 'Deleted'
