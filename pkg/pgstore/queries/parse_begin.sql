-- Rows are locked in order of key, as everywhere, before they are changed.
WITH w AS (
    SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) WITH ORDINALITY w(key, version, kb_id, i)
), live AS (
    SELECT w.i, w.key, w.version, g.id FROM w JOIN generations g ON g.kb_id = w.kb_id AND g.state = 'live'
), locked AS MATERIALIZED (
    SELECT d.key FROM w
    JOIN documents d ON d.key = w.key AND d.version = w.version AND d.kb_id = w.kb_id AND d.status IN ('Pending', 'Indexing')
    JOIN knowledge_bases k ON k.id = d.kb_id AND k.deleted_at IS NULL
    ORDER BY d.key
    FOR UPDATE OF d
), moved AS (
    -- Accepted for a generation that was replaced before anything was staged.
    UPDATE document_versions v SET generation = live.id FROM live JOIN locked USING (key)
    WHERE v.document_key = live.key AND v.version = live.version AND v.generation <> live.id AND v.chunks IS NULL
), begun AS (
    UPDATE documents d SET status = 'Indexing', updated_at = now()
    FROM locked l
    WHERE d.key = l.key AND d.status = 'Pending'
    RETURNING d.key
)
SELECT w.i, v.title, v.oss_key, v.content_type, v.sha256, v.size_bytes, v.chunks, v.run,
       g.id, g.space, g.parser, g.chunking, g.analyzer, b.key IS NOT NULL, p.data, v.split
FROM w
JOIN live ON live.i = w.i
JOIN documents d ON d.key = w.key AND d.version = w.version AND d.kb_id = w.kb_id AND d.status IN ('Pending', 'Indexing')
JOIN knowledge_bases k ON k.id = d.kb_id AND k.deleted_at IS NULL
JOIN document_versions v ON v.document_key = d.key AND v.version = d.version
JOIN generations g ON g.id = CASE WHEN v.chunks IS NULL THEN live.id ELSE v.generation END
LEFT JOIN begun b ON b.key = d.key
LEFT JOIN blob_parts p ON p.kb_id = v.kb_id AND p.sha256 = v.sha256 AND p.part = 0 AND v.size_bytes <= $4
