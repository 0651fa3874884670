SELECT w.i, v.generation, v.title, v.oss_key, v.content_type, v.metadata, v.sha256, coalesce(v.split, false),
       n.order_ns, n.order_seq,
       r.document_key, r.version, r.outcome, r.overtaken
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[]) WITH ORDINALITY w(kb_id, subspace, doc_id, source, i)
JOIN documents d ON d.kb_id = w.kb_id AND d.subspace = w.subspace AND d.doc_id = w.doc_id
LEFT JOIN document_versions v ON v.document_key = d.key AND v.version = d.version
LEFT JOIN LATERAL (
    SELECT order_ns, order_seq FROM document_receipts
    WHERE document_key = d.key AND version = d.version AND outcome = 'unchanged'
    ORDER BY order_ns DESC, order_seq DESC
    LIMIT 1
) n ON true
LEFT JOIN document_receipts r ON r.source = w.source AND r.kb_id = d.kb_id
