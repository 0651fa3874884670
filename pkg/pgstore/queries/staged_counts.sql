SELECT w.document_key, count(*)
FROM unnest($1::bigint[], $2::bigint[]) AS w (document_key, version)
JOIN staged_vectors s USING (document_key, version)
GROUP BY w.document_key
