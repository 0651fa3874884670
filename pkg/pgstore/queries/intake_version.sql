INSERT INTO document_versions (document_key, version, kb_id, generation, title, oss_key, content_type, metadata, typed, sha256, size_bytes, split)
SELECT w.key, w.version, w.kb_id, w.generation, w.title, w.oss_key, w.content_type, w.metadata::jsonb, w.typed::jsonb, w.sha256, w.size_bytes, w.split
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::bytea[], $11::bigint[], $12::boolean[])
     w(key, version, kb_id, generation, title, oss_key, content_type, metadata, typed, sha256, size_bytes, split)
