INSERT INTO document_receipts (source, kb_id, document_key, version, order_ns, order_seq, submit_id, outcome, status, overtaken)
SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::text[], $8::text[], $9::text[], $10::bigint[])
