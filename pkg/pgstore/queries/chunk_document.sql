SELECT d.key, d.live_version, g.id
FROM documents d
JOIN knowledge_bases k ON k.id = d.kb_id AND k.deleted_at IS NULL
JOIN generations g ON g.kb_id = k.id AND g.state = 'live'
WHERE d.kb_id = $1 AND d.subspace = $2 AND d.doc_id = $3 AND d.live_version IS NOT NULL AND true /* shown */
FOR UPDATE OF d
