SELECT key, version, status, order_ns, order_seq, live_version, live_metadata, live_oss_key
FROM documents
WHERE kb_id = $1 AND subspace = $2 AND doc_id = $3
FOR UPDATE
