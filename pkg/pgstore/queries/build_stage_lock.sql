SELECT w.i, b.chunks
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) WITH ORDINALITY w(key, version, generation, i)
JOIN documents d ON d.key = w.key AND d.live_version = w.version
JOIN document_builds b ON b.document_key = d.key AND b.version = d.live_version AND b.generation = w.generation AND b.state = 'pending'
JOIN generations g ON g.id = b.generation AND g.state <> 'dead'
ORDER BY d.key, b.generation
FOR SHARE OF d -- first, as everywhere
FOR UPDATE OF b
