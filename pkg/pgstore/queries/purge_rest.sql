WITH b AS (DELETE FROM blobs WHERE kb_id = $1), r AS (DELETE FROM document_receipts WHERE kb_id = $1)
DELETE FROM generations WHERE kb_id = $1
