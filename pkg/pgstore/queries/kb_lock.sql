SELECT id, metadata_schema FROM knowledge_bases
WHERE tenant = $1 AND name = $2 AND deleted_at IS NULL
FOR UPDATE
