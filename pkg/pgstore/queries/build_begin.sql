SELECT v.title, v.oss_key, v.content_type, v.sha256, v.size_bytes, b.chunks, b.run,
       g.id, g.space, g.parser, g.chunking, g.analyzer, g.fingerprint, live.id, live.space, live.parser, live.chunking, live.analyzer, live.fingerprint
FROM documents d
JOIN knowledge_bases k ON k.id = d.kb_id AND k.deleted_at IS NULL
JOIN document_builds b ON b.document_key = d.key AND b.version = d.live_version AND b.generation = $4 AND b.state = 'pending'
JOIN document_versions v ON v.document_key = d.key AND v.version = d.live_version
JOIN generations g ON g.id = b.generation AND g.state <> 'dead'
JOIN generations live ON live.kb_id = d.kb_id AND live.state = 'live'
WHERE d.key = $1 AND d.live_version = $2 AND d.kb_id = $3
