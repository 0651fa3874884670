DELETE FROM jobs WHERE id IN (
    SELECT id FROM jobs
    WHERE state IN ('done', 'cancelled', 'rolled_back') AND ended_at < now() - make_interval(secs => $1) AND retained_until IS NULL
    LIMIT $2
)
