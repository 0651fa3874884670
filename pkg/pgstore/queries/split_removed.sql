UPDATE document_splits
SET remove_below = CASE WHEN remove_below <= $2 THEN 0 ELSE remove_below END, replaced = CASE WHEN replaced <= $2 THEN 0 ELSE replaced END
WHERE document_key = $1
