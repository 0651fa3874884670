UPDATE jobs SET phase = $2, state = 'running', reason = '', approved = true, ended_at = NULL, lease_until = '-infinity', counts = '{}', skipped = 0,
    updated_at = now()
WHERE id = $1
