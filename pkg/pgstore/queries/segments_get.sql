SELECT seg, n_docs, sum_len, chunk_ids, lens FROM lex_segment WHERE generation = $1 AND seg = ANY($2) ORDER BY seg
