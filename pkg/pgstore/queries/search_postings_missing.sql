-- OFFSET 0 keeps this a probe of the primary key for each pair, whatever the statistics say.
SELECT w.term, w.seg, p.n, p.data
FROM unnest($2::bigint[], $3::bigint[]) w(term, seg)
CROSS JOIN LATERAL (
    SELECT x.n, x.data
    FROM lex_posting x
    WHERE x.generation = $1 AND x.seg = w.seg AND x.term = w.term
    OFFSET 0
) p
