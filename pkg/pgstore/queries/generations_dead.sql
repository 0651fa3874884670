SELECT g.id, g.kb_id FROM generations g JOIN knowledge_bases k ON k.id = g.kb_id AND k.deleted_at IS NULL
WHERE g.state = 'dead' AND g.changed_at < now() - make_interval(secs => $1)
ORDER BY g.id
LIMIT 100
