UPDATE documents d SET version = w.version, status = 'Pending', order_ns = w.order_ns, order_seq = w.order_seq,
    parent_key = w.parent_key, parent_version = w.parent_version, parent_line = w.parent_line, updated_at = now()
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::int[])
     w(key, version, order_ns, order_seq, parent_key, parent_version, parent_line)
WHERE d.key = w.key AND d.key = ANY ($1)
