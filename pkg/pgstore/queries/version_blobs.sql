SELECT sha256 FROM document_versions WHERE document_key = $1
