UPDATE documents d SET status = 'Ready', live_version = w.version,
    live_title = CASE WHEN w.title <> '' THEN w.title ELSE w.parsed_title END,
    live_oss_key = w.oss_key, live_metadata = w.metadata, live_typed = w.typed, updated_at = now()
FROM (
    SELECT w.key, v.* FROM unnest($1::bigint[], $2::bigint[]) w(key, version)
    CROSS JOIN LATERAL (SELECT * FROM document_versions v WHERE v.document_key = w.key AND v.version = w.version OFFSET 0) v
) w
WHERE d.key = w.key AND d.key = ANY ($1)
