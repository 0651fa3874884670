INSERT INTO document_versions (document_key, version, kb_id, generation, title, oss_key, content_type, metadata, typed, sha256, size_bytes)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
