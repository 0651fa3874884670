SELECT d.live_version
FROM documents d
JOIN document_splits s ON s.document_key = d.key AND s.version = d.version AND s.state = 'waiting' AND s.remove_below = 0
WHERE d.key = $1 AND d.version = $2 AND d.status = 'Indexing'
FOR UPDATE
