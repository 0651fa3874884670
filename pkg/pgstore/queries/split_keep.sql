-- Without a number: it stays, but is not waited for or counted.
UPDATE documents d SET parent_version = $2, parent_line = NULL
FROM unnest($4::text[], $5::text[]) w(subspace, doc_id)
WHERE d.kb_id = $3 AND d.subspace = w.subspace AND d.doc_id = w.doc_id AND d.parent_key = $1 AND d.parent_version < $2
