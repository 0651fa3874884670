-- Chunks of the documents in a generation, in the order in which the copies get their ids. fields are those of staged chunks.
SELECT c.document_key, c.embedding, /* fields */ c.ordinal
FROM chunks c
WHERE c.generation = $1 AND c.document_key = ANY ($2) AND (c.document_key, c.ordinal) > ($3::bigint, $4::int)
ORDER BY c.document_key, c.ordinal
LIMIT $5
