UPDATE document_splits SET state = 'done', remove_below = $2, replaced = 0 WHERE document_key = $1
