-- Waits for a merge that is under way.
SELECT pg_advisory_xact_lock(hashtextextended('weir merge ' || ($1::bigint)::text, 0))
