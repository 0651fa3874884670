SELECT v.generation, v.title, v.oss_key, v.content_type, v.metadata, v.sha256
FROM documents d
JOIN document_versions v ON v.document_key = d.key AND v.version = d.version
WHERE d.kb_id = $1 AND d.subspace = $2 AND d.doc_id = $3
