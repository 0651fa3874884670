SELECT k.id, k.tenant, k.name, k.revision, k.index_type, k.subspaces, k.metadata_schema, k.description, k.tags,
       k.retrieval, k.mandatory_filter, k.created_at, k.updated_at,
       g.id, g.space, g.parser, g.chunking, g.analyzer
FROM knowledge_bases k
JOIN generations g ON g.kb_id = k.id AND g.state = 'live'
WHERE k.tenant = $1 AND k.name = $2 AND k.deleted_at IS NULL
