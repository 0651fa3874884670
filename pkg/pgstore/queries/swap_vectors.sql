-- The staged vectors of versions, from a chunk of the first to a chunk of the last.
SELECT s.document_key, s.ordinal, s.embedding
FROM unnest($2::bigint[], $3::bigint[]) w(key, version)
JOIN staged_vectors s ON s.document_key = w.key AND s.version = w.version AND s.generation = $1
WHERE (s.document_key, s.ordinal) >= ($4::bigint, $5::int) AND (s.document_key, s.ordinal) <= ($6::bigint, $7::int)
