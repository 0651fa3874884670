INSERT INTO staged_chunks (generation, document_key, version, layout, ordinal, chunks, rows)
SELECT w.generation, w.key, w.version, $1, w.ordinal, w.chunks, w.rows
FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::int[], $6::int[], $7::bytea[]) w(generation, key, version, ordinal, chunks, rows)
