-- What of a job's builds may be committed: only of live versions, and only into a generation that is not given up.
SELECT d.key, w.version, true, d.kb_id, d.live_version, b.chunks, b.has_vectors, st.chunks, ve.vectors,
       CASE WHEN w.in_hand AND ve.vectors > 0 THEN ARRAY(
           SELECT s.ordinal FROM staged_vectors s WHERE s.document_key = w.key AND s.version = w.version AND s.generation = $4
       ) END
FROM unnest($1::bigint[], $2::bigint[], $3::boolean[]) w(key, version, in_hand)
CROSS JOIN LATERAL (
    SELECT d.key, d.kb_id, d.live_version FROM documents d
    JOIN knowledge_bases k ON k.id = d.kb_id AND k.deleted_at IS NULL
    WHERE d.key = w.key AND d.live_version = w.version
    OFFSET 0
) d
CROSS JOIN LATERAL (
    SELECT b.chunks, g.space IS NOT NULL AS has_vectors FROM document_builds b
    JOIN generations g ON g.id = b.generation AND g.state <> 'dead'
    WHERE b.document_key = w.key AND b.version = w.version AND b.generation = $4 AND b.state = 'pending' AND b.chunks IS NOT NULL
    OFFSET 0
) b
CROSS JOIN LATERAL (
    SELECT coalesce(sum(s.chunks), 0)::int AS chunks FROM staged_chunks s
    WHERE s.document_key = w.key AND s.version = w.version AND s.generation = $4 AND s.layout = $5
) st
CROSS JOIN LATERAL (
    SELECT count(*)::int AS vectors FROM staged_vectors s
    WHERE s.document_key = w.key AND s.version = w.version AND s.generation = $4
) ve
ORDER BY w.key
