SELECT s.chunk_id, s.lex_len, s.lex
FROM unnest($2::bigint[], $3::bigint[]) w(key, version)
JOIN staged_chunks s ON s.document_key = w.key AND s.version = w.version AND s.generation = $1
ORDER BY s.chunk_id
