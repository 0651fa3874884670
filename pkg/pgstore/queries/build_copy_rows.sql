-- Chunks of the documents in a generation, from an ordinal to another. fields are those of staged chunks.
SELECT c.document_key, c.embedding, /* fields */ c.ordinal
FROM chunks c
WHERE c.generation = $1 AND c.document_key = ANY ($2) AND c.ordinal >= $3 AND c.ordinal < $4
