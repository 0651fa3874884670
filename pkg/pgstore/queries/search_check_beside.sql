SELECT true
FROM knowledge_bases k
JOIN generations g ON g.kb_id = k.id AND g.state IN ('building', 'retained')
WHERE k.id = $1 AND k.deleted_at IS NULL AND g.id = $2
