SELECT d.order_ns, d.order_seq, v.metadata
FROM documents d
JOIN document_versions v ON v.document_key = d.key AND v.version = d.version AND v.split
JOIN document_splits s ON s.document_key = d.key AND s.version = d.version AND s.state = 'splitting'
WHERE d.key = $1 AND d.version = $2 AND d.kb_id = $3 AND d.status IN ('Pending', 'Indexing')
