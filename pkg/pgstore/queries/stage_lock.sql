SELECT v.chunks
FROM documents d
JOIN document_versions v ON v.document_key = d.key AND v.version = d.version
WHERE d.key = $1 AND d.version = $2 AND v.generation = $3 AND d.status = 'Indexing'
FOR UPDATE OF v
FOR SHARE OF d
