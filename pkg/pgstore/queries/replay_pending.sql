UPDATE documents SET status = 'Pending', updated_at = now() WHERE key = $1 AND version = $2 AND status = 'Failed'
