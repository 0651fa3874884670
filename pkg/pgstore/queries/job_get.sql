SELECT j.id, j.tenant, j.kb, j.kb_id, j.kind, j.state, j.phase, j.reason, j.source, j.target, j.config, j.selector, j.selected, j.rate_limit,
       j.max_failed, j.manual, j.approved, j.approver, j.gate, j.gate_result, j.retain_seconds, j.estimate, j.counts, j.skipped, j.lease_owner, j.fence,
       j.created_at, j.updated_at, j.flipped_at, j.ended_at, j.retained_until
FROM jobs j WHERE j.tenant = $1 AND j.id = $2
