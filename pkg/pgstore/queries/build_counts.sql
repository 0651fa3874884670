SELECT count(*) AS total,
       count(*) FILTER (WHERE state = 'done'),
       count(*) FILTER (WHERE state = 'failed'),
       coalesce(sum(chunks) FILTER (WHERE state = 'done'), 0),
       coalesce(sum(reused) FILTER (WHERE state = 'done'), 0),
       coalesce(sum(embed_tokens) FILTER (WHERE state = 'done'), 0)
FROM document_builds WHERE generation = $1 AND wanted_at >= $2
