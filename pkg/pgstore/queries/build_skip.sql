-- Counts what a newer version or a delete makes needless of what the job has begun.
WITH old AS (
    SELECT b.generation, count(*) AS n
    FROM unnest($1::bigint[], $2::bigint[]) w(key, version)
    JOIN document_builds b ON b.document_key = w.key AND b.version < w.version AND b.state = 'pending' AND b.queued
    GROUP BY b.generation
)
UPDATE jobs j SET skipped = skipped + old.n FROM old
WHERE j.state IN ('running', 'paused', 'waiting') AND CASE j.phase WHEN 'build' THEN j.target ELSE j.source END = old.generation
