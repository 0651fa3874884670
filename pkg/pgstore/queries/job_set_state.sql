UPDATE jobs SET state = $2, reason = $3, updated_at = now(), lease_owner = '', lease_until = '-infinity',
    ended_at = CASE WHEN $2 IN ('running', 'paused', 'waiting') THEN NULL ELSE now() END
WHERE id = $1
