SELECT p.term, p.seg, p.n, p.data
FROM lex_segment s
JOIN lex_posting p ON p.generation = s.generation AND p.seg = s.seg AND p.term = ANY($2::bigint[])
WHERE s.generation = $1 AND s.seg <> ALL($3::bigint[])
