-- What was accepted for the generation and is not live starts again in the one that is.
UPDATE document_versions v SET generation = live.id, chunks = NULL, reused = 0, run = run + 1
FROM documents d, generations live
WHERE d.kb_id = $2 AND live.kb_id = $2 AND live.state = 'live' AND v.document_key = d.key AND v.version = d.version AND v.generation = $1
  AND d.status IN ('Pending', 'Indexing', 'Failed') AND d.live_version IS DISTINCT FROM d.version
