WITH w AS (
    SELECT * FROM unnest($1::bigint[], $2::bigint[]) w(key, version)
), vectors AS (
    DELETE FROM staged_vectors s USING w WHERE s.document_key = w.key AND s.document_key = ANY ($1) AND s.version < w.version
)
DELETE FROM staged_chunks s USING w WHERE s.document_key = w.key AND s.document_key = ANY ($1) AND s.version < w.version
