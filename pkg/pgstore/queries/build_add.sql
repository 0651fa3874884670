INSERT INTO document_builds (generation, document_key, version)
SELECT g.id, w.key, w.version
FROM unnest($1::bigint[]) g(id)
CROSS JOIN unnest($2::bigint[], $3::bigint[]) w(key, version)
ON CONFLICT DO NOTHING
