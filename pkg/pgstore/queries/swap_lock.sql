SELECT d.key, d.version, d.kb_id, d.live_version, v.generation, v.chunks, g.space IS NOT NULL,
       (SELECT count(*) FROM staged_vectors s WHERE s.document_key = d.key AND s.version = d.version AND s.generation = v.generation),
       (SELECT count(*) FROM staged_chunks s WHERE s.document_key = d.key AND s.version = d.version AND s.generation = v.generation)
FROM unnest($1::bigint[], $2::bigint[]) w(key, version)
JOIN documents d ON d.key = w.key AND d.version = w.version AND d.status = 'Indexing'
JOIN document_versions v ON v.document_key = d.key AND v.version = d.version
JOIN generations g ON g.id = v.generation AND g.state = 'live'
WHERE v.generation = $3 AND v.chunks IS NOT NULL
