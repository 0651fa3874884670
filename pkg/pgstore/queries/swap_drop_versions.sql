DELETE FROM document_versions v
USING unnest($1::bigint[], $2::bigint[]) w(key, version)
WHERE v.document_key = w.key AND v.document_key = ANY ($1) AND v.version < w.version
