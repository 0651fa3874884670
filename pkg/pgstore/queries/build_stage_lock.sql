SELECT b.chunks
FROM documents d
JOIN document_builds b ON b.document_key = d.key AND b.version = d.live_version AND b.generation = $3 AND b.state = 'pending'
JOIN generations g ON g.id = b.generation AND g.state <> 'dead'
WHERE d.key = $1 AND d.live_version = $2
FOR UPDATE OF b
FOR SHARE OF d
