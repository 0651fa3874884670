SELECT count(*) FILTER (WHERE status = 'Pending'), count(*) FILTER (WHERE status = 'Indexing'),
       count(*) FILTER (WHERE status = 'Ready'), count(*) FILTER (WHERE status = 'Failed')
FROM documents
WHERE kb_id = $1
