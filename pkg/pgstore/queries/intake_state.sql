SELECT w.i, v.generation, v.title, v.oss_key, v.content_type, v.metadata, v.sha256, coalesce(v.split, false),
       n.order_ns, n.order_seq,
       r.document_key, r.version, r.outcome, r.status, r.overtaken
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[]) WITH ORDINALITY w(kb_id, subspace, doc_id, source, i)
CROSS JOIN LATERAL (
    SELECT d.key, d.version, d.kb_id FROM documents d
    WHERE d.kb_id = w.kb_id AND d.subspace = w.subspace AND d.doc_id = w.doc_id
    OFFSET 0
) d
LEFT JOIN LATERAL (SELECT * FROM document_versions v WHERE v.document_key = d.key AND v.version = d.version OFFSET 0) v ON true
LEFT JOIN LATERAL (
    SELECT order_ns, order_seq FROM document_receipts
    WHERE document_key = d.key AND version = d.version AND outcome = 'unchanged'
    ORDER BY order_ns DESC, order_seq DESC
    LIMIT 1
) n ON true
LEFT JOIN LATERAL (SELECT * FROM document_receipts r WHERE r.source = w.source AND r.kb_id = d.kb_id OFFSET 0) r ON true
