INSERT INTO staged_vectors (generation, document_key, version, ordinal, embedding)
SELECT $1, $2, $3, w.ordinal, w.embedding
FROM unnest($4::int[], $5::halfvec[]) w(ordinal, embedding)
WHERE EXISTS (SELECT 1 FROM documents d WHERE d.key = $2 AND d.version = $3 AND d.status = 'Indexing')
ON CONFLICT DO NOTHING
