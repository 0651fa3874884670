UPDATE documents d SET version = w.version, status = 'Pending', order_ns = w.order_ns, order_seq = w.order_seq, updated_at = now()
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) w(key, version, order_ns, order_seq)
WHERE d.key = w.key
