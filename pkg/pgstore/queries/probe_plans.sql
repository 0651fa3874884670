-- Looks up by index whatever the planner knows of tables that grow this fast: rows by the million are looked for one
-- by one, and a scan for each would not end.
SELECT set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true)
