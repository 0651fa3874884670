WITH gone AS (
    UPDATE knowledge_bases SET deleted_at = now(), revision = revision + 1
    WHERE tenant = $1 AND name = $2 AND deleted_at IS NULL
    RETURNING id
), dead AS (
    UPDATE generations SET state = 'dead' WHERE kb_id IN (SELECT id FROM gone)
)
SELECT id FROM gone
