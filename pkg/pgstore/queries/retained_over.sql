SELECT id, kb_id, source FROM jobs
WHERE state = 'done' AND retained_until < now()
ORDER BY id
LIMIT 100
