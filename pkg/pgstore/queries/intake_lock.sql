SELECT w.i, d.key, d.version, d.status, d.order_ns, d.order_seq, d.live_version, d.live_metadata, d.live_oss_key,
       coalesce(d.parent_key, 0), coalesce(d.parent_version, 0), coalesce(d.parent_line, 0)
FROM (
    -- Rows are locked in order of key.
    SELECT w.i, f.key FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[]) WITH ORDINALITY w(kb_id, subspace, doc_id, revision, i)
    CROSS JOIN LATERAL (SELECT 1 FROM knowledge_bases k WHERE k.id = w.kb_id AND k.revision = w.revision AND k.deleted_at IS NULL OFFSET 0) k
    CROSS JOIN LATERAL (SELECT f.key FROM documents f WHERE f.kb_id = w.kb_id AND f.subspace = w.subspace AND f.doc_id = w.doc_id OFFSET 0) f
    ORDER BY f.key
) w
CROSS JOIN LATERAL (SELECT * FROM documents d WHERE d.key = w.key FOR UPDATE) d
