SELECT c.document_key, c.content FROM chunks c
JOIN generations g ON g.id = c.generation AND g.state = 'live'
WHERE g.kb_id = $1 AND c.document_key = ANY ($2) AND NOT c.active
