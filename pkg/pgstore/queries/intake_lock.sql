SELECT w.i, d.key, d.version, d.status, d.order_ns, d.order_seq, d.live_version, d.live_metadata, d.live_oss_key,
       coalesce(d.parent_key, 0), coalesce(d.parent_version, 0), coalesce(d.parent_line, 0)
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[]) WITH ORDINALITY w(kb_id, subspace, doc_id, revision, i)
JOIN knowledge_bases k ON k.id = w.kb_id AND k.revision = w.revision AND k.deleted_at IS NULL
JOIN documents d ON d.kb_id = w.kb_id AND d.subspace = w.subspace AND d.doc_id = w.doc_id
ORDER BY d.key
FOR UPDATE OF d
