WITH failed AS (
    UPDATE documents SET status = 'Failed', updated_at = now()
    WHERE key = $1 AND version = $2 AND kb_id = $3 AND status IN ('Pending', 'Indexing')
    RETURNING key
)
UPDATE document_versions v SET error = $4, attempts = $5
FROM failed WHERE v.document_key = failed.key AND v.version = $2
