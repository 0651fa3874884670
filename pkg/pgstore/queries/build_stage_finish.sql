UPDATE document_builds SET chunks = $4, tokens = $5, warnings = $6, title = $7, updated_at = now(),
    embed_tokens = (
        SELECT coalesce(sum(t.tokens), 0) FROM unnest($8::int[], $9::int[]) t(ordinal, tokens)
        WHERE NOT EXISTS (SELECT 1 FROM staged_vectors s WHERE s.document_key = $1 AND s.version = $2 AND s.generation = $3 AND s.ordinal = t.ordinal)),
    reused = (SELECT count(*) FROM staged_vectors s WHERE s.document_key = $1 AND s.version = $2 AND s.generation = $3)
WHERE document_key = $1 AND version = $2 AND generation + 0 = $3 -- not by the index on generations
RETURNING reused
