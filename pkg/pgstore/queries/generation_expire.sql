UPDATE generations SET state = 'dead', changed_at = now() WHERE id = $1 AND state = 'retained'
