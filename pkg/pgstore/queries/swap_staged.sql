-- Part of the staged chunks of versions, in the order in which they get their ids.
SELECT s.document_key, s.ordinal, s.chunks, s.rows
FROM unnest($2::bigint[], $3::bigint[]) w(key, version)
JOIN staged_chunks s ON s.document_key = w.key AND s.version = w.version AND s.generation = $1 AND s.layout = $4
WHERE (s.document_key, s.ordinal) > ($5::bigint, $6::int)
ORDER BY s.document_key, s.ordinal
LIMIT $7
