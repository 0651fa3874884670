-- What the ingester may do. Run it as weir_owner or a superuser after `weir migrate`, and again after an upgrade
-- that adds tables; running it twice is harmless.

-- Who it works for, and what version the schema has.
GRANT SELECT ON goose_db_version, knowledge_bases, generations TO weir_ingester;

-- A delete locks its knowledge base's row against a switch of generations; locking asks for a right to update.
GRANT UPDATE (updated_at) ON knowledge_bases TO weir_ingester;

-- Documents, their contents, and chunks that wait for their vectors.
GRANT SELECT, INSERT, UPDATE, DELETE
   ON documents, document_versions, document_builds, blobs, blob_parts, staged_chunks, staged_vectors TO weir_ingester;
GRANT SELECT, INSERT ON document_receipts TO weir_ingester;
GRANT SELECT, INSERT, UPDATE ON document_splits TO weir_ingester;
GRANT USAGE ON SEQUENCE chunk_ids TO weir_ingester;

-- A delete takes the live chunks with it; known vectors are read from them.
GRANT SELECT, DELETE ON chunks TO weir_ingester;
GRANT SELECT, INSERT ON lex_tombstone TO weir_ingester;

-- It counts what that makes needless of a job.
GRANT SELECT, UPDATE (skipped) ON jobs TO weir_ingester;
