WITH v AS (DELETE FROM staged_vectors WHERE generation = $1)
DELETE FROM staged_chunks WHERE generation = $1
