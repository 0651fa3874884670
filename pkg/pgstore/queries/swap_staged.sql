-- Staged chunks of versions, from an ordinal to another.
SELECT s.document_key, s.ordinal, s.chunks, s.rows
FROM unnest($2::bigint[], $3::bigint[]) w(key, version)
CROSS JOIN LATERAL (
    SELECT * FROM staged_chunks s
    WHERE s.document_key = w.key AND s.version = w.version AND s.generation = $1 AND s.layout = $4 AND s.ordinal >= $5 AND s.ordinal < $6
    OFFSET 0
) s
