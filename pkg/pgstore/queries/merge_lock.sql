-- What is left of a generation that is given up is dropped, not merged.
SELECT pg_try_advisory_xact_lock(hashtextextended('weir merge ' || ($1::bigint)::text, 0))
   AND EXISTS (SELECT 1 FROM generations WHERE id = $1 AND state <> 'dead')
