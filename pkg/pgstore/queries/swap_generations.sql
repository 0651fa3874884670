SELECT o.id, o.state FROM generations g JOIN generations o ON o.kb_id = g.kb_id
WHERE g.id = $1 AND o.state <> 'dead'
ORDER BY o.id
