SELECT document_key, version, submit_id, outcome, status, overtaken FROM document_receipts WHERE source = $1 AND kb_id = $2
