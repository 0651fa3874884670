SELECT seg, n_docs, sum_len, CASE WHEN seg = ANY($2::bigint[]) THEN NULL ELSE chunk_ids END,
       CASE WHEN seg = ANY($2) THEN NULL ELSE lens END
FROM lex_segment
WHERE generation = $1
ORDER BY seg
