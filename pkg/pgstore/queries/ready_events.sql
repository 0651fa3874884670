SELECT w.key, w.version, coalesce(v.chunks, 0), coalesce(v.reused, 0), coalesce(v.tokens, 0), coalesce(v.warnings, '{}'), r.submit_id, r.source,
       coalesce(v.reactivated, 0)
FROM unnest($1::bigint[], $2::bigint[]) w(key, version)
CROSS JOIN LATERAL (SELECT * FROM documents d WHERE d.key = w.key OFFSET 0) d
LEFT JOIN LATERAL (SELECT * FROM document_versions v WHERE v.document_key = w.key AND v.version = w.version OFFSET 0) v ON true
CROSS JOIN LATERAL (
    SELECT * FROM document_receipts r
    WHERE r.document_key = w.key AND r.version = w.version AND r.outcome IN ('accepted', 'unchanged')
    OFFSET 0
) r
WHERE d.live_version = w.version
   -- It was live and a newer one is: nothing overtook it while it was open, and it did not fail.
   OR d.version > w.version
      AND (SELECT count(*) FROM document_receipts o WHERE o.document_key = w.key AND o.overtaken = w.version) = 0 -- never hashed
      AND (SELECT count(*) FROM dead_letters l WHERE l.kb_id = d.kb_id AND l.subspace = d.subspace AND l.doc_id = d.doc_id AND l.version = w.version) = 0
ORDER BY w.key, r.created_at, r.source
