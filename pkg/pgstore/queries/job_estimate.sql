SELECT (SELECT count(*) FROM documents WHERE kb_id = $1 AND live_version IS NOT NULL), count(*), coalesce(sum(tokens), 0)
FROM chunks
WHERE generation = $2
