WITH b AS (DELETE FROM blobs WHERE kb_id = $1)
DELETE FROM generations WHERE kb_id = $1
