WITH failed AS (
    UPDATE documents SET status = 'Failed', updated_at = now()
    WHERE key = $1 AND version = $2 AND kb_id = $3 AND status IN ('Pending', 'Indexing')
    RETURNING key
), known AS (
    UPDATE dead_letters SET failed = true WHERE id = $6 AND EXISTS (SELECT FROM failed)
)
UPDATE document_versions v SET error = $4, attempts = $5
FROM failed WHERE v.document_key = failed.key AND v.version = $2
