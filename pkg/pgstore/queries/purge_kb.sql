DELETE FROM knowledge_bases WHERE id = $1 AND deleted_at IS NOT NULL
