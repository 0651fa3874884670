SELECT w.key, w.version, coalesce(v.chunks, 0), coalesce(v.reused, 0), coalesce(v.tokens, 0), coalesce(v.warnings, '{}'), r.submit_id, r.source,
       coalesce(v.reactivated, 0)
FROM unnest($1::bigint[], $2::bigint[]) w(key, version)
JOIN documents d ON d.key = w.key
LEFT JOIN document_versions v ON v.document_key = w.key AND v.version = w.version
JOIN document_receipts r ON r.document_key = w.key AND r.version = w.version AND r.outcome IN ('accepted', 'unchanged')
WHERE d.live_version = w.version
   -- It was live and a newer one is: nothing overtook it while it was open, and it did not fail.
   OR d.version > w.version
      AND NOT EXISTS (SELECT FROM document_receipts o WHERE o.document_key = w.key AND o.overtaken = w.version)
      AND NOT EXISTS (SELECT FROM dead_letters l WHERE l.kb_id = d.kb_id AND l.subspace = d.subspace AND l.doc_id = d.doc_id AND l.version = w.version)
ORDER BY w.key, r.created_at, r.source
