-- For statements on one partition: a plan that is kept would lock those of all generations.
SET LOCAL plan_cache_mode = force_custom_plan
