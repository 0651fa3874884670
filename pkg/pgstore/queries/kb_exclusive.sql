-- Excludes swaps, deletes and commits of builds, which lock the row FOR SHARE, and lets intake's foreign keys pass.
SELECT id FROM knowledge_bases WHERE id = $1 AND deleted_at IS NULL FOR NO KEY UPDATE
