-- Live documents of a knowledge base to be built anew in its live generation where a condition allows it. What is replaced
-- while others are listed is left out, and is new anyway; versions are locked in order of key, as everywhere.
INSERT INTO document_builds (generation, document_key, version)
SELECT $2, d.key, d.live_version
FROM documents d
JOIN document_versions v ON v.document_key = d.key AND v.version = d.live_version
JOIN generations g ON g.id = $2 AND g.state = 'live'
LEFT JOIN document_builds b ON b.document_key = d.key AND b.version = d.live_version AND b.generation = $2
CROSS JOIN LATERAL (
    SELECT count(*) AS chunks, count(c.embedding) AS vectors FROM chunks c
    WHERE c.generation = $2 AND c.document_key = d.key AND c.version = d.live_version
) have
WHERE d.kb_id = $1 AND d.live_version IS NOT NULL AND ($3::text[] IS NULL OR d.subspace = ANY ($3))
  AND (NOT $4 OR have.chunks = 0 OR have.chunks <> coalesce(b.chunks, v.chunks, have.chunks) OR g.space IS NOT NULL AND have.vectors < have.chunks)
  AND true /* shown */
ORDER BY d.key
FOR KEY SHARE OF v
ON CONFLICT (document_key, version, generation) DO UPDATE
SET state = 'pending', queued = false, run = document_builds.run + 1, chunks = NULL, error = NULL, wanted_at = now(), updated_at = now()
