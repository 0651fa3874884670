-- Rows are locked in order of key, as everywhere, before they are changed.
WITH w AS (
    SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) WITH ORDINALITY w(key, version, kb_id, i) ORDER BY w.key
), locked AS MATERIALIZED (
    SELECT w.i, d.key, d.version, d.status, live.id AS live
    FROM w
    CROSS JOIN LATERAL (SELECT g.id FROM generations g WHERE g.kb_id = w.kb_id AND g.state = 'live' OFFSET 0) live
    CROSS JOIN LATERAL (
        SELECT d.key, d.version, d.status FROM documents d
        JOIN knowledge_bases k ON k.id = d.kb_id AND k.deleted_at IS NULL
        WHERE d.key = w.key AND d.version = w.version AND d.kb_id = w.kb_id AND d.status IN ('Pending', 'Indexing')
        FOR UPDATE OF d
    ) d
), moved AS (
    -- Accepted for a generation that was replaced before anything was staged.
    UPDATE document_versions v SET generation = l.live FROM locked l
    WHERE v.document_key = l.key AND v.document_key = ANY ($1) AND v.version = l.version AND v.generation <> l.live AND v.chunks IS NULL
), begun AS (
    UPDATE documents d SET status = 'Indexing', updated_at = now()
    WHERE d.key = ANY (ARRAY(SELECT l.key FROM locked l WHERE l.status = 'Pending'))
)
SELECT l.i, v.title, v.oss_key, v.content_type, v.sha256, v.size_bytes, v.chunks, v.run,
       g.id, g.space, g.parser, g.chunking, g.analyzer, l.status = 'Pending', p.data, v.split
FROM locked l
CROSS JOIN LATERAL (SELECT * FROM document_versions v WHERE v.document_key = l.key AND v.version = l.version OFFSET 0) v
CROSS JOIN LATERAL (SELECT * FROM generations g WHERE g.id = CASE WHEN v.chunks IS NULL THEN l.live ELSE v.generation END OFFSET 0) g
LEFT JOIN LATERAL (
    SELECT p.data FROM blob_parts p WHERE p.kb_id = v.kb_id AND p.sha256 = v.sha256 AND p.part = 0 AND v.size_bytes <= $4
    OFFSET 0
) p ON true
