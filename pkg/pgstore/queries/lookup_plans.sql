-- For statements that find few rows by their keys, over and over: planned once for each connection, and always through
-- the indexes. Such a plan must not depend on how large a table was when it was made, so these statements name a row's
-- keys in a LATERAL of its own (OFFSET 0 keeps it one), or all keys once more as an array.
SELECT set_config('plan_cache_mode', 'force_generic_plan', true), set_config('enable_seqscan', 'off', true),
       set_config('enable_bitmapscan', 'off', true)
