SELECT k.tenant, k.name, k.id, b.generation, d.subspace, d.doc_id, d.key, b.version, b.run, b.chunks, b.updated_at,
       (SELECT coalesce(sum(s.chunks), 0)::int FROM staged_chunks s WHERE s.document_key = d.key AND s.version = b.version AND s.generation = b.generation),
       (SELECT count(*) FROM staged_vectors s WHERE s.document_key = d.key AND s.version = b.version AND s.generation = b.generation),
       g.space IS NOT NULL
FROM jobs j
JOIN generations g ON g.id = CASE j.phase WHEN 'build' THEN j.target ELSE j.source END AND g.state <> 'dead'
JOIN document_builds b ON b.generation = g.id AND b.state = 'pending' AND b.queued
JOIN documents d ON d.key = b.document_key AND d.live_version = b.version
JOIN knowledge_bases k ON k.id = d.kb_id AND k.deleted_at IS NULL
WHERE j.state = 'running' AND d.key > $1 AND b.updated_at < now() - make_interval(secs => $2)
ORDER BY d.key
LIMIT $3
