SELECT data FROM blob_parts WHERE kb_id = $1 AND sha256 = $2 AND part = $3
