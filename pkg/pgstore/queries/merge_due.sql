SELECT generation FROM lex_segment GROUP BY generation HAVING count(*) > 1
UNION
SELECT DISTINCT generation FROM lex_tombstone
ORDER BY 1
