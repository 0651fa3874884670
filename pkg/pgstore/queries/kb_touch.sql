UPDATE knowledge_bases SET revision = revision + 1, updated_at = now() WHERE id = $1
