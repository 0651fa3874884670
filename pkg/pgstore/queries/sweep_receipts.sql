DELETE FROM document_receipts WHERE source IN (
    SELECT source FROM document_receipts WHERE created_at < now() - make_interval(secs => $1) ORDER BY created_at LIMIT $2
)
