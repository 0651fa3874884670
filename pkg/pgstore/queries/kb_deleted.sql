SELECT k.id, k.tenant, k.name, coalesce(array_agg(g.id) FILTER (WHERE g.id IS NOT NULL), '{}')
FROM knowledge_bases k
LEFT JOIN generations g ON g.kb_id = k.id
WHERE k.deleted_at < now() - make_interval(secs => $1)
  AND NOT EXISTS (SELECT 1 FROM split_ends e JOIN documents d ON d.key = e.document_key WHERE d.kb_id = k.id) -- they are told first
GROUP BY k.id
ORDER BY k.id
LIMIT 100
