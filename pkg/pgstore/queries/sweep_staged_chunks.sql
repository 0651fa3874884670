DELETE FROM staged_chunks s
WHERE NOT EXISTS (SELECT 1 FROM documents d WHERE d.key = s.document_key AND d.version = s.version AND d.status IN ('Pending', 'Indexing', 'Failed'))
  AND NOT EXISTS (SELECT 1 FROM document_builds b
                  WHERE b.document_key = s.document_key AND b.version = s.version AND b.generation = s.generation AND b.state = 'pending')
