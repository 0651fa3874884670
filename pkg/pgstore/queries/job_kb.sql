SELECT kb_id FROM jobs WHERE tenant = $1 AND id = $2
