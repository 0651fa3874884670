-- Titles that a parser found, where the submit gave none.
UPDATE documents d SET live_title = coalesce(b.title, v.parsed_title)
FROM document_versions v
LEFT JOIN document_builds b ON b.document_key = v.document_key AND b.version = v.version AND b.generation = $2 AND b.state = 'done'
WHERE d.kb_id = $1 AND v.document_key = d.key AND v.version = d.live_version AND v.title = '' AND d.live_title <> coalesce(b.title, v.parsed_title)
