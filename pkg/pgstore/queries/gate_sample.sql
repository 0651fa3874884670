-- The beginnings of some chunks, the same ones for the same seed.
SELECT left(content, 400) FROM chunks
WHERE generation = $1 AND active AND content <> ''
ORDER BY hashtextextended(document_key || '/' || ordinal, $2)
LIMIT $3
