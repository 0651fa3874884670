INSERT INTO document_receipts (source, kb_id, document_key, version, order_ns, order_seq, submit_id, outcome, overtaken)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
