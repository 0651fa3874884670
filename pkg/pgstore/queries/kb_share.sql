-- Held, the knowledge base is not deleted; none when it is already.
SELECT id FROM knowledge_bases WHERE id = $1 AND deleted_at IS NULL FOR SHARE
