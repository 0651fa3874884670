SELECT term, n, data FROM lex_posting WHERE generation = $1 AND seg = $2 ORDER BY term
