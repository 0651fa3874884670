SELECT seg, n_docs, chunk_ids FROM lex_segment WHERE generation = $1 ORDER BY seg
