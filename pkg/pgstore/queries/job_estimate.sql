-- Chunks and tokens of the live generation, and those of them whose exact string no generation of the space has.
SELECT (SELECT count(*) FROM documents WHERE kb_id = $1 AND live_version IS NOT NULL), count(*), coalesce(sum(c.tokens), 0),
       count(*) FILTER (WHERE NOT k.known), coalesce(sum(c.tokens) FILTER (WHERE NOT k.known), 0)
FROM chunks c
CROSS JOIN LATERAL (
    SELECT EXISTS (SELECT 1 FROM chunks o WHERE o.generation = ANY ($3) AND o.hash = c.hash AND o.embedding IS NOT NULL) AS known
) k
WHERE c.generation = $2
