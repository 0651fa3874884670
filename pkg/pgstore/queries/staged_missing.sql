SELECT s.ordinal, s.hash, s.context, s.content, v.ordinal IS NOT NULL
FROM staged_chunks s
LEFT JOIN staged_vectors v USING (document_key, version, generation, ordinal)
WHERE s.document_key = $1 AND s.version = $2 AND s.generation = $3
ORDER BY s.ordinal
