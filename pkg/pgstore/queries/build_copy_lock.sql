-- Builds of live versions whose chunks another generation, the live one, can give, with how many those are.
SELECT d.key, b.version, d.kb_id, n.chunks::int, n.vectors = n.chunks
FROM unnest($1::bigint[], $2::bigint[]) w(key, version)
JOIN documents d ON d.key = w.key AND d.live_version = w.version
JOIN document_builds b ON b.document_key = d.key AND b.version = w.version AND b.generation = $3 AND b.state = 'pending'
JOIN generations g ON g.id = $3 AND g.state <> 'dead'
JOIN generations live ON live.id = $4 AND live.kb_id = d.kb_id AND live.state = 'live'
CROSS JOIN LATERAL (
    SELECT count(*) AS chunks, count(c.embedding) AS vectors FROM chunks c
    WHERE c.generation = $4 AND c.document_key = w.key AND c.version = w.version
) n
ORDER BY d.key
