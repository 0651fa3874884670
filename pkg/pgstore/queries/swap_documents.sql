UPDATE documents d SET status = 'Ready', live_version = v.version,
    live_title = CASE WHEN v.title <> '' THEN v.title ELSE v.parsed_title END,
    live_oss_key = v.oss_key, live_metadata = v.metadata, live_typed = v.typed, updated_at = now()
FROM unnest($1::bigint[], $2::bigint[]) w(key, version)
JOIN document_versions v ON v.document_key = w.key AND v.version = w.version
WHERE d.key = w.key
