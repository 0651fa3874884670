SELECT w.i, v.chunks
FROM (SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) WITH ORDINALITY w(key, version, generation, i) ORDER BY w.key) w
CROSS JOIN LATERAL ( -- first, as everywhere
    SELECT d.key, d.version FROM documents d
    WHERE d.key = w.key AND d.version = w.version AND d.status = 'Indexing'
    FOR SHARE
) d
CROSS JOIN LATERAL (
    SELECT v.chunks FROM document_versions v
    WHERE v.document_key = d.key AND v.version = d.version AND v.generation = w.generation
    FOR UPDATE
) v
