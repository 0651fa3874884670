INSERT INTO document_splits (document_key, version, state)
SELECT w.key, w.version, 'splitting' FROM unnest($1::bigint[], $2::bigint[]) w(key, version)
ON CONFLICT (document_key) DO UPDATE SET version = excluded.version, state = 'splitting', lines = '{}', replaced = 0
