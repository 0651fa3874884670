SELECT c.ordinal, c.content, c.heading_path, c.page_from, c.page_to, c.origin, c.tokens, CASE WHEN c.active THEN 'active' ELSE 'inactive' END
FROM documents d
JOIN chunks c ON c.generation = $1 AND c.document_key = d.key AND c.version = d.live_version
WHERE d.kb_id = $2 AND d.subspace = $3 AND d.doc_id = $4 AND c.ordinal > $5 AND true /* shown */
ORDER BY c.ordinal
LIMIT $6
