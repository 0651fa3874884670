SELECT v.generation, v.title, v.oss_key, v.content_type, v.metadata, v.sha256,
       n.order_ns, n.order_seq,
       r.document_key, r.version, r.outcome, r.overtaken
FROM documents d
LEFT JOIN document_versions v ON v.document_key = d.key AND v.version = d.version
LEFT JOIN LATERAL (
    SELECT order_ns, order_seq FROM document_receipts
    WHERE document_key = d.key AND version = d.version AND outcome = 'unchanged'
    ORDER BY order_ns DESC, order_seq DESC
    LIMIT 1
) n ON true
LEFT JOIN document_receipts r ON r.source = $4 AND r.kb_id = d.kb_id
WHERE d.kb_id = $1 AND d.subspace = $2 AND d.doc_id = $3
