SELECT size_bytes FROM blobs WHERE kb_id = $1 AND sha256 = $2 FOR KEY SHARE
