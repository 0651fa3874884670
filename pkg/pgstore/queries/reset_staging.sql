-- Behind the lock of the document: what was staged anew since the chunks were found lost is seen, and stays. Lost is what
-- swap_lock tells: chunks are missing, or they are of a generation that is not live any more.
WITH v AS (
    UPDATE document_versions v SET chunks = NULL, reused = 0, run = v.run + 1
    FROM documents d, generations g
    WHERE d.key = $1 AND d.version = $2 AND d.status = 'Indexing' AND v.document_key = d.key AND v.version = d.version AND v.chunks IS NOT NULL
      AND g.id = v.generation AND (g.state <> 'live' OR v.chunks > (
          SELECT coalesce(sum(s.chunks), 0) FROM staged_chunks s
          WHERE s.document_key = $1 AND s.version = $2 AND s.generation = v.generation AND s.layout = $3
      ))
    RETURNING v.document_key, v.version, v.run
), c AS (
    DELETE FROM staged_chunks s USING v WHERE s.document_key = v.document_key AND s.version = v.version
), e AS (
    DELETE FROM staged_vectors s USING v WHERE s.document_key = v.document_key AND s.version = v.version
)
SELECT run FROM v
