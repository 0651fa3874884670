-- In order of key, as everywhere; the rows are locked already.
UPDATE documents d SET parent_key = w.parent_key, parent_version = w.parent_version, parent_line = w.parent_line
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::int[]) w(key, parent_key, parent_version, parent_line)
WHERE d.key = w.key AND d.key = ANY ($1)
