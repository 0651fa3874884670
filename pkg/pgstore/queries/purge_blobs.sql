DELETE FROM blob_parts WHERE ctid = ANY (ARRAY(SELECT ctid FROM blob_parts WHERE kb_id = $1 LIMIT 100))
