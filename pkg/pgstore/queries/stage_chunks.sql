INSERT INTO staged_chunks (generation, document_key, version, layout, ordinal, chunks, rows)
SELECT $1, $2, $3, $4, w.ordinal, w.chunks, w.rows
FROM unnest($5::int[], $6::int[], $7::bytea[]) w(ordinal, chunks, rows)
