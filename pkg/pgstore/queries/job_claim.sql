-- Locked by id, so that two that look at the same moment take different ones.
WITH free AS (
    SELECT id FROM jobs
    WHERE state = 'running' AND lease_until < now()
    ORDER BY lease_until, id
    LIMIT 1
    FOR UPDATE SKIP LOCKED
)
UPDATE jobs j SET lease_owner = $1, lease_until = now() + make_interval(secs => $2), fence = j.fence + 1
FROM free WHERE j.id = free.id
RETURNING j.id, j.tenant, j.kb, j.kb_id, j.kind, j.state, j.phase, j.reason, j.source, j.target, j.config, j.selector, j.selected, j.rate_limit,
       j.max_failed, j.manual, j.approved, j.approver, j.gate, j.gate_result, j.retain_seconds, j.estimate, j.counts, j.skipped, j.lease_owner, j.fence,
       j.created_at, j.updated_at, j.flipped_at, j.ended_at, j.retained_until
