SELECT id, state FROM generations WHERE kb_id = $1 AND state <> 'dead' ORDER BY id
