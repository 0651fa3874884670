SELECT id, space, parser, chunking, analyzer, fingerprint FROM generations WHERE id = $1
