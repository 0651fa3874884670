SELECT true
FROM knowledge_bases k
JOIN generations g ON g.kb_id = k.id AND g.state = 'live'
WHERE k.id = $1 AND k.revision = $2 AND k.deleted_at IS NULL AND g.id = $3
