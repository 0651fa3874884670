SELECT source, submit_id, outcome FROM document_receipts
WHERE document_key = $1 AND version = $2 AND outcome IN ('accepted', 'unchanged', 'deleted')
ORDER BY created_at, source
LIMIT 1000
