SELECT key, subspace, doc_id FROM documents
WHERE parent_key = $1 AND parent_version < $2 AND key > $3
ORDER BY key
LIMIT $4
