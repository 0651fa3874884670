WITH ended AS (
    UPDATE documents SET status = $3, live_version = NULL, live_title = '', live_oss_key = '', live_metadata = '{}', live_typed = '{}', updated_at = now()
    WHERE key = $1 AND version = $2
    RETURNING key
), version AS (
    UPDATE document_versions v SET error = $4 FROM ended WHERE v.document_key = ended.key AND v.version = $2
), split AS (
    UPDATE document_splits s SET state = 'done', lines = $5 FROM ended WHERE s.document_key = ended.key AND s.version = $2
)
INSERT INTO split_ends (document_key, version, status, error, lines) SELECT key, $2, $3, $4, $5 FROM ended
