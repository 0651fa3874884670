WITH gone AS (
    UPDATE knowledge_bases SET deleted_at = now(), revision = revision + 1
    WHERE tenant = $1 AND name = $2 AND deleted_at IS NULL
    RETURNING id
), dead AS (
    UPDATE generations SET state = 'dead', changed_at = now() WHERE kb_id IN (SELECT id FROM gone)
), stopped AS (
    UPDATE jobs SET state = 'cancelled', reason = 'the knowledge base was deleted', fence = fence + 1, ended_at = now(), updated_at = now()
    WHERE kb_id IN (SELECT id FROM gone) AND state IN ('running', 'paused', 'waiting')
)
SELECT id FROM gone
