UPDATE jobs SET approved = true, approver = $2, max_failed = coalesce($3, max_failed), updated_at = now() WHERE id = $1
