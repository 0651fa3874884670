SELECT coalesce(b.title, v.parsed_title), coalesce(b.warnings, v.warnings)
FROM document_versions v
LEFT JOIN document_builds b ON b.document_key = v.document_key AND b.version = v.version AND b.generation = $3 AND b.state = 'done'
WHERE v.document_key = $1 AND v.version = $2
