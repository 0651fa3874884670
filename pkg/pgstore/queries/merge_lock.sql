SELECT pg_try_advisory_xact_lock(hashtextextended('weir merge ' || ($1::bigint)::text, 0))
