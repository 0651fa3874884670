-- The document first, as everywhere.
WITH d AS (
    UPDATE documents d SET status = 'Pending', updated_at = now()
    FROM knowledge_bases k
    WHERE k.tenant = $1 AND k.name = $2 AND k.deleted_at IS NULL AND d.kb_id = k.id
      AND d.subspace = $3 AND d.doc_id = $4 AND d.version = $5 AND d.status = 'Failed'
    RETURNING d.key, d.kb_id, d.version
)
UPDATE document_versions v SET run = v.run + 1, error = NULL, attempts = 0
FROM d WHERE v.document_key = d.key AND v.version = d.version
RETURNING d.key, d.kb_id, v.generation, v.run
