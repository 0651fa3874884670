DELETE FROM dead_letters WHERE id IN (
    SELECT id FROM dead_letters WHERE state <> 'open' AND updated_at < now() - make_interval(secs => $1) LIMIT $2
)
