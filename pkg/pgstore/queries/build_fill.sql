-- Live documents without a build of that version, in order of subspace and id. Rows that somebody holds are left to the
-- next look; a row that changed meanwhile is read as it is now.
WITH page AS (
    SELECT d.key, d.live_version, d.subspace, d.doc_id
    FROM documents d
    WHERE d.kb_id = $1 AND (d.subspace, d.doc_id) > ($3, $4) AND d.live_version IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM document_builds b WHERE b.document_key = d.key AND b.version = d.live_version AND b.generation = $2)
      AND NOT EXISTS (SELECT 1 FROM chunks c WHERE c.generation = $2 AND c.document_key = d.key AND c.version = d.live_version)
    ORDER BY d.subspace, d.doc_id
    LIMIT $5
    FOR SHARE OF d SKIP LOCKED
), added AS (
    INSERT INTO document_builds (generation, document_key, version)
    SELECT $2, key, live_version FROM page
    ON CONFLICT DO NOTHING
)
SELECT subspace, doc_id FROM page ORDER BY subspace, doc_id
