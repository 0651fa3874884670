WITH w AS (
    SELECT * FROM unnest($1::bigint[], $2::bigint[]) w(key, version)
), hand AS (
    SELECT * FROM unnest($4::bigint[], $5::bigint[], $6::int[]) h(key, version, ordinal)
), staged AS (
    SELECT s.document_key AS key, s.version, count(*) AS chunks, count(*) FILTER (WHERE v.ordinal IS NULL AND h.ordinal IS NULL) AS missing
    FROM w
    JOIN staged_chunks s ON s.document_key = w.key AND s.version = w.version AND s.generation = $3
    LEFT JOIN staged_vectors v ON v.document_key = s.document_key AND v.version = s.version AND v.generation = s.generation AND v.ordinal = s.ordinal
    LEFT JOIN hand h ON h.key = s.document_key AND h.version = s.version AND h.ordinal = s.ordinal
    GROUP BY s.document_key, s.version
)
SELECT d.key, d.version, d.kb_id, d.live_version, v.chunks, g.space IS NOT NULL, coalesce(st.chunks, 0), coalesce(st.missing, 0)
FROM w
JOIN documents d ON d.key = w.key AND d.version = w.version AND d.status = 'Indexing'
JOIN document_versions v ON v.document_key = d.key AND v.version = d.version AND v.generation = $3 AND v.chunks IS NOT NULL
JOIN generations g ON g.id = v.generation AND g.state = 'live'
JOIN knowledge_bases k ON k.id = d.kb_id AND k.deleted_at IS NULL
LEFT JOIN staged st ON st.key = d.key AND st.version = d.version
