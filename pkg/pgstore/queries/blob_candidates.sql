SELECT b.kb_id, b.sha256 FROM blobs b
WHERE b.created_at < now() - make_interval(secs => $1)
  AND NOT EXISTS (SELECT 1 FROM document_versions v WHERE v.kb_id = b.kb_id AND v.sha256 = b.sha256)
LIMIT $2
