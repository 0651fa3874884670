-- In order, so that two transactions that open the same documents wait for each other one way only.
INSERT INTO documents (kb_id, subspace, doc_id, version, status, order_ns, order_seq)
SELECT w.kb_id, w.subspace, w.doc_id, 0, 'Pending', 0, 0
FROM unnest($1::bigint[], $2::text[], $3::text[]) w(kb_id, subspace, doc_id)
WHERE EXISTS (SELECT 1 FROM knowledge_bases k WHERE k.id = w.kb_id AND k.deleted_at IS NULL)
ORDER BY w.kb_id, w.subspace COLLATE "C", w.doc_id COLLATE "C"
ON CONFLICT (kb_id, subspace, doc_id) DO NOTHING
