-- OFFSET 0 keeps this a probe of the primary key for each segment, whatever the statistics say.
SELECT p.term, s.seg, p.n, p.data
FROM lex_segment s
CROSS JOIN LATERAL (
    SELECT x.term, x.n, x.data
    FROM lex_posting x
    WHERE x.generation = s.generation AND x.seg = s.seg AND x.term = ANY($2::bigint[])
    OFFSET 0
) p
WHERE s.generation = $1 AND s.seg <> ALL($3::bigint[])
