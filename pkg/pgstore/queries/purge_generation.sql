DELETE FROM generations WHERE id = $1 AND state = 'dead'
