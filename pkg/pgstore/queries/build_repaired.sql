WITH w AS (
    SELECT b.* FROM unnest($2::bigint[], $3::bigint[]) w(key, version)
    JOIN document_builds b ON b.document_key = w.key AND b.version = w.version AND b.generation = $1
), mended AS (
    UPDATE documents d SET status = 'Ready', updated_at = now() FROM w
    WHERE d.key = w.document_key AND d.version = w.version AND d.live_version = w.version AND d.status = 'Failed'
)
UPDATE document_versions v SET chunks = w.chunks, tokens = w.tokens, warnings = w.warnings, parsed_title = w.title, error = NULL
FROM w WHERE v.document_key = w.document_key AND v.version = w.version
