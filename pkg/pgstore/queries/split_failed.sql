SELECT d.parent_line, d.doc_id, coalesce(v.error, '{}'), count(*) OVER ()
FROM documents d
LEFT JOIN document_versions v ON v.document_key = d.key AND v.version = d.version
WHERE d.parent_key = $1 AND d.parent_version = $2 AND d.parent_line IS NOT NULL AND d.status = 'Failed'
ORDER BY d.parent_line
LIMIT $3
