SELECT d.doc_id, d.subspace, d.status, d.version, coalesce(d.live_version, 0), d.updated_at,
       CASE WHEN v.version = d.live_version THEN d.live_title ELSE coalesce(nullif(v.title, ''), v.parsed_title, '') END,
       CASE WHEN v.version = d.live_version THEN d.live_oss_key ELSE coalesce(v.oss_key, '') END,
       CASE WHEN v.version = d.live_version THEN d.live_metadata ELSE coalesce(v.metadata, '{}') END,
       coalesce(v.content_type, ''), coalesce(v.size_bytes, 0), coalesce(b.chunks, v.chunks, 0), coalesce(b.reused, v.reused, 0), coalesce(b.tokens, v.tokens, 0),
       coalesce(b.warnings, v.warnings, '{}'), v.error, coalesce(v.submitted_at, d.updated_at),
       CASE WHEN d.status = 'Ready' THEN coalesce(b.chunks, v.chunks, 0) ELSE 0 END, coalesce(v.reactivated, 0),
       CASE WHEN v.split THEN (SELECT s.lines FROM document_splits s WHERE s.document_key = d.key AND s.version = d.version) END,
       d.key, pg_is_in_recovery()
FROM documents d
LEFT JOIN document_versions v ON v.document_key = d.key AND v.version = d.version
LEFT JOIN generations g ON g.kb_id = d.kb_id AND g.state = 'live'
LEFT JOIN document_builds b ON b.document_key = d.key AND b.version = d.version AND b.generation = g.id AND b.state = 'done'
WHERE d.kb_id = $1 AND (d.subspace, d.doc_id) > ($2, $3) AND ($4::text[] IS NULL OR d.subspace = ANY($4))
  AND ($5 = '' OR d.status = $5) AND d.version > 0 AND d.status <> 'Deleted' AND true /* shown */
ORDER BY d.subspace, d.doc_id
LIMIT $6
