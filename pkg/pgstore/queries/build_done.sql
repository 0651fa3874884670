UPDATE document_builds b SET state = 'done', error = NULL, updated_at = now()
FROM unnest($2::bigint[], $3::bigint[]) w(key, version)
WHERE b.generation = $1 AND b.document_key = w.key AND b.document_key = ANY ($2) AND b.version = w.version
