SELECT id FROM jobs WHERE kb_id = $1 AND state IN ('running', 'paused', 'waiting')
