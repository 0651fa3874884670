SELECT w.i, v.chunks
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) WITH ORDINALITY w(key, version, generation, i)
JOIN documents d ON d.key = w.key AND d.version = w.version AND d.status = 'Indexing'
JOIN document_versions v ON v.document_key = d.key AND v.version = d.version AND v.generation = w.generation
ORDER BY d.key
FOR SHARE OF d -- first, as everywhere
FOR UPDATE OF v
