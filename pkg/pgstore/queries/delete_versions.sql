DELETE FROM document_versions WHERE document_key = $1
