-- By a knowledge base of the name, whether it is deleted or not.
SELECT k.id, r.document_key, r.version, r.outcome, r.status, r.overtaken
FROM knowledge_bases k
JOIN document_receipts r ON r.source = k.id || '/' || $3 AND r.kb_id = k.id
JOIN documents d ON d.key = r.document_key AND d.subspace = $4 AND d.doc_id = $5
WHERE k.tenant = $1 AND k.name = $2
ORDER BY k.id DESC
LIMIT 1
