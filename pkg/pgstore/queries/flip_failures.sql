-- The public status is that of the generation that readers see: what it lacks is Failed, what it has is Ready again.
WITH lost AS (
    UPDATE documents d SET status = 'Failed', updated_at = now()
    FROM document_builds b
    WHERE d.kb_id = $1 AND b.document_key = d.key AND b.version = d.live_version AND b.generation = $2 AND b.state = 'failed'
      AND d.version = d.live_version AND d.status = 'Ready'
    RETURNING d.key, d.version, b.error, b.attempts
), said AS (
    UPDATE document_versions v SET error = lost.error, attempts = lost.attempts FROM lost
    WHERE v.document_key = lost.key AND v.version = lost.version
), found AS (
    UPDATE documents d SET status = 'Ready', updated_at = now()
    WHERE d.kb_id = $1 AND d.status = 'Failed' AND d.version = d.live_version
      AND EXISTS (SELECT 1 FROM chunks c WHERE c.generation = $2 AND c.document_key = d.key AND c.version = d.live_version)
    RETURNING d.key, d.version
)
UPDATE document_versions v SET error = NULL, attempts = 0 FROM found
WHERE v.document_key = found.key AND v.version = found.version
