SELECT error->>'code', count(*), min(error->>'message'), (array_agg(d.doc_id ORDER BY d.subspace, d.doc_id))[1:100]
FROM document_builds b JOIN documents d ON d.key = b.document_key
WHERE b.generation = $1 AND b.state = 'failed' AND b.wanted_at >= $2
GROUP BY 1 ORDER BY 2 DESC, 1
LIMIT 50
