UPDATE document_splits s SET state = 'done', replaced = w.version
FROM unnest($1::bigint[], $2::bigint[]) w(key, version)
WHERE s.document_key = w.key AND s.document_key = ANY ($1)
