SELECT k.id FROM knowledge_bases k JOIN generations g ON g.kb_id = k.id
WHERE g.id = $1 AND k.deleted_at IS NULL
FOR SHARE OF k
