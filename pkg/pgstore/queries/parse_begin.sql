WITH live AS (
    SELECT g.id FROM documents d JOIN generations g ON g.kb_id = d.kb_id AND g.state = 'live' WHERE d.key = $1
), moved AS (
    -- Accepted for a generation that was replaced before anything was staged.
    UPDATE document_versions v SET generation = live.id FROM live
    WHERE v.document_key = $1 AND v.version = $2 AND v.generation <> live.id AND v.chunks IS NULL
), begun AS (
    UPDATE documents d SET status = 'Indexing', updated_at = now()
    FROM knowledge_bases k
    WHERE d.key = $1 AND d.version = $2 AND d.status = 'Pending' AND k.id = d.kb_id AND k.deleted_at IS NULL
    RETURNING d.key
)
SELECT v.title, v.oss_key, v.content_type, v.sha256, v.size_bytes, v.chunks, v.run,
       g.id, g.space, g.parser, g.chunking, g.analyzer, EXISTS (SELECT 1 FROM begun)
FROM documents d
JOIN knowledge_bases k ON k.id = d.kb_id AND k.deleted_at IS NULL
JOIN document_versions v ON v.document_key = d.key AND v.version = d.version
JOIN live ON true
JOIN generations g ON g.id = CASE WHEN v.chunks IS NULL THEN live.id ELSE v.generation END
WHERE d.key = $1 AND d.version = $2 AND d.kb_id = $3 AND d.status IN ('Pending', 'Indexing')
