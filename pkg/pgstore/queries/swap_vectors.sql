-- Staged vectors of versions, from an ordinal to another.
SELECT s.document_key, s.ordinal, s.embedding
FROM unnest($2::bigint[], $3::bigint[]) w(key, version)
CROSS JOIN LATERAL (
    SELECT * FROM staged_vectors s
    WHERE s.document_key = w.key AND s.version = w.version AND s.generation = $1 AND s.ordinal >= $4 AND s.ordinal < $5
    OFFSET 0
) s
