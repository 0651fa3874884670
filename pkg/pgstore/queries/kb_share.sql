SELECT id FROM knowledge_bases WHERE id = $1 FOR SHARE
