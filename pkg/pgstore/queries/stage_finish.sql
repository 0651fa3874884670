UPDATE document_versions v SET chunks = w.chunks, tokens = w.tokens, warnings = ARRAY(SELECT jsonb_array_elements_text(w.warnings::jsonb)),
    parsed_title = w.title,
    reused = (SELECT count(*) FROM staged_vectors s WHERE s.document_key = w.key AND s.version = w.version AND s.generation = w.generation)
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::int[], $5::int[], $6::text[], $7::text[])
     WITH ORDINALITY w(key, version, generation, chunks, tokens, warnings, title, i)
WHERE v.document_key = w.key AND v.document_key = ANY ($1) AND v.version = w.version
RETURNING w.i, v.reused
