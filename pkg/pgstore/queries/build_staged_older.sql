WITH w AS (
    SELECT * FROM unnest($2::bigint[], $3::bigint[]) w(key, version)
), vectors AS (
    DELETE FROM staged_vectors s USING w
    WHERE s.document_key = w.key AND s.document_key = ANY ($2) AND s.version < w.version AND s.generation = ANY ($1)
)
DELETE FROM staged_chunks s USING w
WHERE s.document_key = w.key AND s.document_key = ANY ($2) AND s.version < w.version AND s.generation = ANY ($1)
