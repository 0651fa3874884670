WITH garbage AS (
    SELECT h.sha256 FROM unnest($2::bytea[]) h(sha256)
    WHERE NOT EXISTS (SELECT 1 FROM document_versions v WHERE v.kb_id = $1 AND v.sha256 = h.sha256)
), parts AS (
    DELETE FROM blob_parts p USING garbage g WHERE p.kb_id = $1 AND p.sha256 = g.sha256
)
DELETE FROM blobs b USING garbage g WHERE b.kb_id = $1 AND b.sha256 = g.sha256
