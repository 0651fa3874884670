SELECT s.document_key, s.version, s.state = 'waiting', s.lines,
       CASE WHEN s.replaced > 0 AND d.status IN ('Ready', 'Deleted') THEN greatest(s.remove_below, s.replaced) ELSE s.remove_below END,
       d.version, d.status, d.order_ns, d.order_seq, d.subspace, d.doc_id, k.id, k.tenant, k.name, k.deleted_at IS NOT NULL
FROM document_splits s
JOIN documents d ON d.key = s.document_key
JOIN knowledge_bases k ON k.id = d.kb_id
WHERE (s.state = 'waiting' OR s.remove_below > 0 OR s.replaced > 0) -- as the index has it
  AND (s.state = 'waiting' OR s.remove_below > 0 OR d.status IN ('Ready', 'Deleted')) AND s.document_key > $1
ORDER BY s.document_key
LIMIT $2
