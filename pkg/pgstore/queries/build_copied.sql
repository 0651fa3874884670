UPDATE document_builds b SET state = 'done', queued = true, error = NULL, chunks = n.chunks, tokens = n.tokens, updated_at = now(),
    reused = CASE WHEN $5 THEN n.chunks ELSE 0 END, title = coalesce(s.title, v.parsed_title), warnings = coalesce(s.warnings, v.warnings)
FROM unnest($2::bigint[], $3::bigint[]) w(key, version)
JOIN document_versions v ON v.document_key = w.key AND v.version = w.version
LEFT JOIN document_builds s ON s.document_key = w.key AND s.version = w.version AND s.generation = $4 AND s.state = 'done'
CROSS JOIN LATERAL (
    SELECT count(*) AS chunks, sum(c.tokens) AS tokens FROM chunks c
    WHERE c.generation = $1 AND c.document_key = w.key AND c.version = w.version
) n
WHERE b.generation = $1 AND b.document_key = w.key AND b.version = w.version
