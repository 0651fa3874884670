UPDATE jobs SET state = $2, reason = '', flipped_at = now(), ended_at = now(), updated_at = now(), lease_owner = '', lease_until = '-infinity',
    retained_until = CASE WHEN $2 = 'done' AND kind = 'reindex' THEN now() + make_interval(secs => retain_seconds) END
WHERE id = $1
