-- The last submit of a document under an id of its publisher.
SELECT r.source, r.document_key, r.version, r.outcome, r.status, r.overtaken
FROM documents d
JOIN document_receipts r ON r.document_key = d.key AND r.submit_id = $4 AND r.outcome <> 'deleted'
WHERE d.kb_id = $1 AND d.subspace = $2 AND d.doc_id = $3
ORDER BY r.order_ns DESC, r.order_seq DESC
LIMIT 1
