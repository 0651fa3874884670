INSERT INTO chunks (generation, chunk_id, document_key, version, ordinal, page_from, page_to, tokens, lex_len,
                    heading_path, context, content, hash, lex, embedding)
SELECT s.generation, s.chunk_id, s.document_key, s.version, s.ordinal, s.page_from, s.page_to, s.tokens, s.lex_len,
       s.heading_path, s.context, s.content, s.hash, s.lex, coalesce(v.embedding, h.embedding)
FROM unnest($2::bigint[], $3::bigint[]) w(key, version)
JOIN staged_chunks s ON s.document_key = w.key AND s.version = w.version AND s.generation = $1
LEFT JOIN staged_vectors v ON v.document_key = s.document_key AND v.version = s.version AND v.generation = s.generation AND v.ordinal = s.ordinal
LEFT JOIN unnest($4::bigint[], $5::bigint[], $6::int[], $7::halfvec[]) h(key, version, ordinal, embedding)
       ON h.key = s.document_key AND h.version = s.version AND h.ordinal = s.ordinal
ORDER BY s.chunk_id
