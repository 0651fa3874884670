SELECT count(*) FILTER (WHERE b.state IS DISTINCT FROM 'failed'), count(*) FILTER (WHERE b.state = 'failed')
FROM documents d
LEFT JOIN document_builds b ON b.document_key = d.key AND b.version = d.live_version AND b.generation = $2
WHERE d.kb_id = $1 AND d.live_version IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM chunks c WHERE c.generation = $2 AND c.document_key = d.key AND c.version = d.live_version)
