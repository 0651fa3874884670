INSERT INTO staged_chunks (generation, document_key, version, ordinal, page_from, page_to, tokens, lex_len, heading_path, context, content, hash, lex)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
