UPDATE document_versions v SET reactivated = g.n
FROM unnest($2::bigint[], $3::bigint[]) w(key, version)
JOIN (SELECT document_key, count(*) AS n FROM chunks WHERE generation = $1 AND NOT active AND document_key = ANY($2) GROUP BY document_key) g
  ON g.document_key = w.key
WHERE v.document_key = w.key AND v.version = w.version
