SELECT r.order_ns, r.order_seq
FROM documents d
JOIN document_receipts r ON r.document_key = d.key AND r.version = d.version AND r.outcome = 'unchanged'
WHERE d.kb_id = $1 AND d.subspace = $2 AND d.doc_id = $3
ORDER BY r.order_ns DESC, r.order_seq DESC
LIMIT 1
