SELECT c.oid IS NOT NULL, i.inhrelid IS NOT NULL, coalesce(i.inhdetachpending, false)
FROM (SELECT to_regclass($1::text) AS oid) c
LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
