WITH w AS (
    SELECT * FROM unnest($1::bigint[], $2::bigint[]) w(key, version)
), staged AS (
    SELECT s.document_key AS key, s.version, sum(s.chunks) AS chunks
    FROM w
    JOIN staged_chunks s ON s.document_key = w.key AND s.version = w.version AND s.generation = $3 AND s.layout = $7
    GROUP BY s.document_key, s.version
), vectors AS (
    SELECT s.document_key AS key, s.version, count(*) AS vectors
    FROM w
    JOIN staged_vectors s ON s.document_key = w.key AND s.version = w.version AND s.generation = $3
    GROUP BY s.document_key, s.version
), hand AS (
    SELECT h.key, h.version, count(*) AS vectors
    FROM unnest($4::bigint[], $5::bigint[], $6::int[]) h(key, version, ordinal)
    JOIN document_versions v ON v.document_key = h.key AND v.version = h.version AND h.ordinal < v.chunks
    WHERE NOT EXISTS (
        SELECT 1 FROM staged_vectors s
        WHERE s.document_key = h.key AND s.version = h.version AND s.generation = $3 AND s.ordinal = h.ordinal)
    GROUP BY h.key, h.version
)
SELECT d.key, d.version, g.state = 'live', d.kb_id, d.live_version, v.chunks, g.space IS NOT NULL,
       coalesce(st.chunks, 0)::int, coalesce(ve.vectors, 0)::int, coalesce(h.vectors, 0)::int
FROM w
JOIN documents d ON d.key = w.key AND d.version = w.version AND d.status = 'Indexing'
JOIN document_versions v ON v.document_key = d.key AND v.version = d.version AND v.generation = $3 AND v.chunks IS NOT NULL
JOIN generations g ON g.id = v.generation
JOIN knowledge_bases k ON k.id = d.kb_id AND k.deleted_at IS NULL
LEFT JOIN staged st ON st.key = d.key AND st.version = d.version
LEFT JOIN vectors ve ON ve.key = d.key AND ve.version = d.version
LEFT JOIN hand h ON h.key = d.key AND h.version = d.version
ORDER BY d.key
