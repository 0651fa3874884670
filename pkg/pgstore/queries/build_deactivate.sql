UPDATE chunks c SET active = false
FROM unnest($2::bigint[], $3::text[]) w(key, content)
WHERE c.generation = $1 AND c.document_key = w.key AND c.content = w.content AND c.active
