SELECT k.tenant, k.name, k.id, v.generation, d.subspace, d.doc_id, d.key, d.version, v.run, d.status, v.chunks, d.updated_at,
       (SELECT coalesce(sum(s.chunks), 0)::int FROM staged_chunks s WHERE s.document_key = d.key AND s.version = d.version AND s.generation = v.generation),
       (SELECT count(*) FROM staged_vectors s WHERE s.document_key = d.key AND s.version = d.version AND s.generation = v.generation),
       g.space IS NOT NULL
FROM documents d
JOIN knowledge_bases k ON k.id = d.kb_id AND k.deleted_at IS NULL
JOIN document_versions v ON v.document_key = d.key AND v.version = d.version
JOIN generations g ON g.id = v.generation
WHERE d.status IN ('Pending', 'Indexing') AND d.key > $1 AND d.updated_at < now() - make_interval(secs => $2)
  -- One that is split waits for its lines, whose versions are looked at themselves.
  AND NOT (v.split AND EXISTS (SELECT FROM document_splits s WHERE s.document_key = d.key AND s.version = d.version AND s.state <> 'splitting'))
ORDER BY d.key
LIMIT $3
