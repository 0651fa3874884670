SELECT EXISTS (SELECT 1 FROM documents d WHERE d.key = r.document_key AND d.subspace = $3 AND d.doc_id = $4),
       r.document_key, r.version, r.outcome, r.status, r.overtaken
FROM document_receipts r WHERE r.source = $1 AND r.kb_id = $2
