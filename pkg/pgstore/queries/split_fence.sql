-- Held until the lines are taken in: a newer version or a delete of their document comes before or after, not between.
SELECT key FROM documents WHERE key = $1 AND version = $2 AND status IN ('Pending', 'Indexing') FOR SHARE
