SELECT id FROM generations WHERE kb_id = $1 AND state <> 'dead' AND space = $2 ORDER BY id DESC
