-- Receipts go with their documents: they have no index on knowledge bases.
WITH page AS MATERIALIZED (
    SELECT key FROM documents WHERE kb_id = $1 LIMIT 5000
), receipts AS (
    DELETE FROM document_receipts r WHERE r.document_key = ANY (ARRAY(SELECT key FROM page))
)
DELETE FROM documents d WHERE d.key = ANY (ARRAY(SELECT key FROM page))
