UPDATE jobs SET state = 'waiting', reason = $3, lease_owner = '', lease_until = '-infinity', updated_at = now()
WHERE id = $1 AND fence = $2 AND state = 'running'
