SELECT space FROM generations WHERE id = $1
