DELETE FROM lex_posting WHERE ctid = ANY (ARRAY(SELECT ctid FROM lex_posting WHERE generation = $1 LIMIT 50000))
