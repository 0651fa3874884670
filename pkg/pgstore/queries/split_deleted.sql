WITH ended AS (
    UPDATE documents SET status = 'Deleted', updated_at = now() WHERE key = $1 AND version = $2 AND status = 'Deleting' RETURNING key
)
INSERT INTO split_ends (document_key, version, status) SELECT key, $2, 'Deleted' FROM ended
