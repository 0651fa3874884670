WITH found AS (
    SELECT chunk_id, active, content FROM chunks WHERE generation = $1 AND document_key = $2 AND version = $3 AND ordinal = $4
), changed AS (
    UPDATE chunks c SET active = $5 FROM found f WHERE c.generation = $1 AND c.chunk_id = f.chunk_id AND f.active <> $5
), elsewhere AS (
    -- The same passage where a job builds the document, or did.
    UPDATE chunks c SET active = $5 FROM found f
    WHERE c.generation = ANY ($6) AND c.generation <> $1 AND c.document_key = $2 AND c.version = $3 AND c.content = f.content AND c.active <> $5
)
SELECT count(*) FROM found
