-- Planned for what the tables hold now: an index on the generation alone looks as good as any while that has few chunks.
SET LOCAL plan_cache_mode = force_custom_plan
