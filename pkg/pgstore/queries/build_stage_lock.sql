SELECT w.i, b.chunks
FROM (SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) WITH ORDINALITY w(key, version, generation, i) ORDER BY w.key, w.generation) w
CROSS JOIN LATERAL ( -- first, as everywhere
    SELECT d.key, d.live_version FROM documents d
    WHERE d.key = w.key AND d.live_version = w.version
    FOR SHARE
) d
CROSS JOIN LATERAL (
    SELECT b.chunks FROM document_builds b
    JOIN generations g ON g.id = w.generation AND g.state <> 'dead'
    WHERE b.document_key = d.key AND b.version = d.live_version AND b.generation + 0 = w.generation AND b.state = 'pending' -- not by the index on generations
    FOR UPDATE OF b
) b
