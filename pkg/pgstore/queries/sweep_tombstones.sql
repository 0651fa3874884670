DELETE FROM documents WHERE key IN (
    SELECT key FROM documents WHERE status = 'Deleted' AND updated_at < now() - make_interval(secs => $1) LIMIT $2
)
