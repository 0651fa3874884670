DELETE FROM document_builds WHERE ctid = ANY (ARRAY(SELECT ctid FROM document_builds WHERE generation = $1 LIMIT 50000))
