INSERT INTO knowledge_bases (tenant, name, index_type, subspaces, metadata_schema, description, tags, retrieval, mandatory_filter)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
RETURNING id, created_at
