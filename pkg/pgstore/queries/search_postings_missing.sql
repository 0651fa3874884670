SELECT p.term, p.seg, p.n, p.data
FROM unnest($2::bigint[], $3::bigint[]) w(term, seg)
JOIN lex_posting p ON p.generation = $1 AND p.seg = w.seg AND p.term = w.term
