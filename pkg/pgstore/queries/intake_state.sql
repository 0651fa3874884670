SELECT w.i, v.generation, v.title, v.oss_key, v.content_type, v.metadata, v.sha256, coalesce(v.split, false),
       n.order_ns, n.order_seq,
       r.document_key, r.version, r.outcome, r.status, r.overtaken
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[]) WITH ORDINALITY w(kb_id, subspace, doc_id, source, i)
CROSS JOIN LATERAL (
    SELECT d.key, d.version, d.kb_id, d.order_ns, d.order_seq FROM documents d
    WHERE d.kb_id = w.kb_id AND d.subspace = w.subspace AND d.doc_id = w.doc_id
    OFFSET 0
) d
LEFT JOIN LATERAL (SELECT * FROM document_versions v WHERE v.document_key = d.key AND v.version = d.version OFFSET 0) v ON true
LEFT JOIN LATERAL (
    -- The first that the index gives, or none: there may be any number of them, and of others that are older.
    SELECT n.order_ns, n.order_seq FROM document_receipts n
    WHERE n.document_key = d.key AND n.version = d.version AND (n.order_ns, n.order_seq) > (d.order_ns, d.order_seq) AND n.outcome = 'unchanged'
    ORDER BY n.order_ns DESC, n.order_seq DESC
    LIMIT 1
) n ON true
LEFT JOIN LATERAL (SELECT * FROM document_receipts r WHERE r.source = w.source AND r.kb_id = d.kb_id OFFSET 0) r ON true
