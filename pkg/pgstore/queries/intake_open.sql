INSERT INTO documents (kb_id, subspace, doc_id, version, status, order_ns, order_seq)
SELECT $1, $2, $3, 0, 'Pending', 0, 0
WHERE EXISTS (SELECT 1 FROM knowledge_bases WHERE id = $1 AND deleted_at IS NULL)
ON CONFLICT (kb_id, subspace, doc_id) DO NOTHING
