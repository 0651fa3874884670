UPDATE generations SET state = $2, changed_at = now() WHERE id = $1
