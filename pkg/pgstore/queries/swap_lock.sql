SELECT d.key, d.version, v.current, d.kb_id, d.live_version, v.chunks, v.has_vectors, st.chunks, ve.vectors,
       CASE WHEN w.in_hand AND ve.vectors > 0 THEN ARRAY(
           SELECT s.ordinal FROM staged_vectors s WHERE s.document_key = w.key AND s.version = w.version AND s.generation = $4
       ) END
FROM unnest($1::bigint[], $2::bigint[], $3::boolean[]) w(key, version, in_hand)
CROSS JOIN LATERAL (
    SELECT d.key, d.version, d.kb_id, d.live_version FROM documents d
    JOIN knowledge_bases k ON k.id = d.kb_id AND k.deleted_at IS NULL
    WHERE d.key = w.key AND d.version = w.version AND d.status = 'Indexing'
    OFFSET 0
) d
CROSS JOIN LATERAL (
    SELECT v.chunks, g.state = 'live' AS current, g.space IS NOT NULL AS has_vectors FROM document_versions v
    JOIN generations g ON g.id = v.generation
    WHERE v.document_key = d.key AND v.version = d.version AND v.generation = $4 AND v.chunks IS NOT NULL
    OFFSET 0
) v
CROSS JOIN LATERAL (
    SELECT coalesce(sum(s.chunks), 0)::int AS chunks FROM staged_chunks s
    WHERE s.document_key = w.key AND s.version = w.version AND s.generation = $4 AND s.layout = $5
) st
CROSS JOIN LATERAL (
    SELECT count(*)::int AS vectors FROM staged_vectors s
    WHERE s.document_key = w.key AND s.version = w.version AND s.generation = $4
) ve
ORDER BY w.key
