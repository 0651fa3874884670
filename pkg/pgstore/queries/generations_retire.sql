-- All but the two that a rollback needs: an older one could be gone back to only over a younger.
WITH old AS (
    UPDATE generations SET state = 'dead', changed_at = now()
    WHERE kb_id = $1 AND state = 'retained' AND id <> $2
    RETURNING id
)
UPDATE jobs SET retained_until = now() WHERE kb_id = $1 AND state = 'done' AND source IN (SELECT id FROM old)
