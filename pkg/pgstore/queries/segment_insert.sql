INSERT INTO lex_segment (generation, n_docs, sum_len, chunk_ids, lens) VALUES ($1, $2, $3, $4, $5) RETURNING seg
