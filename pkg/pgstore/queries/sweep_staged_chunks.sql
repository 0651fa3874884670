DELETE FROM staged_chunks s
WHERE NOT EXISTS (SELECT 1 FROM documents d WHERE d.key = s.document_key AND d.version = s.version AND d.status IN ('Pending', 'Indexing', 'Failed'))
