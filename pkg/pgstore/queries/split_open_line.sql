SELECT key FROM documents
WHERE parent_key = $1 AND parent_version = $2 AND parent_line IS NOT NULL AND key >= $3 AND status IN ('Pending', 'Indexing')
ORDER BY key
LIMIT 1
