SELECT d.key, d.version, d.status, d.order_ns, d.order_seq, d.live_version, d.live_metadata, d.live_oss_key
FROM documents d
JOIN knowledge_bases k ON k.id = d.kb_id AND k.revision = $4 AND k.deleted_at IS NULL
WHERE d.kb_id = $1 AND d.subspace = $2 AND d.doc_id = $3
FOR UPDATE OF d
