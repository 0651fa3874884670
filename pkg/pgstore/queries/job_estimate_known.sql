-- Chunks whose exact string a generation of the space has, and their tokens.
SELECT count(*), coalesce(sum(c.tokens), 0) FROM chunks c
WHERE c.generation = $1 AND EXISTS (SELECT 1 FROM chunks o WHERE o.generation = ANY ($2) AND o.hash = c.hash AND o.embedding IS NOT NULL)
