-- OFFSET 0 leaves the planner no index on the order.
SELECT r.source, r.submit_id, r.outcome
FROM (SELECT * FROM document_receipts WHERE document_key = $1 AND version = $2 AND outcome IN ('accepted', 'unchanged', 'deleted') OFFSET 0) r
ORDER BY r.created_at, r.source
