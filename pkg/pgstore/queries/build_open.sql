SELECT (SELECT count(*) FROM document_builds WHERE generation = $1 AND state = 'pending' AND queued),
       EXISTS (SELECT 1 FROM document_builds WHERE generation = $1 AND state = 'pending' AND NOT queued)
