SELECT w.key, w.version, coalesce(v.chunks, 0), v.reused, v.tokens, v.warnings, r.submit_id, r.source
FROM unnest($1::bigint[], $2::bigint[]) w(key, version)
JOIN documents d ON d.key = w.key AND d.live_version = w.version
JOIN document_versions v ON v.document_key = w.key AND v.version = w.version
JOIN document_receipts r ON r.document_key = w.key AND r.version = w.version AND r.outcome IN ('accepted', 'unchanged')
ORDER BY w.key, r.created_at, r.source
