SELECT document_key, version, submit_id, outcome, overtaken FROM document_receipts WHERE source = $1 AND kb_id = $2
