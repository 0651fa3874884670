DELETE FROM split_ends WHERE document_key = $1 AND version = $2
