UPDATE knowledge_bases SET
    description      = coalesce($2, description),
    tags             = coalesce($3, tags),
    metadata_schema  = coalesce($4, metadata_schema),
    retrieval        = CASE WHEN $6 THEN $5 ELSE retrieval END,
    mandatory_filter = CASE WHEN $8 THEN $7 ELSE mandatory_filter END,
    revision         = revision + 1,
    updated_at       = now()
WHERE id = $1
