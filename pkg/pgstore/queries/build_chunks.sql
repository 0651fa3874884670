SELECT c.ordinal, c.page_from, c.page_to, c.tokens, c.lex_len, c.heading_path, c.context, c.content, c.hash, c.lex, c.origin
FROM chunks c
WHERE c.generation = $1 AND c.document_key = $2 AND c.version = $3
ORDER BY c.ordinal
