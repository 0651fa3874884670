-- Roles of a Weir installation, each with no more rights than its part needs. Run it once, as a superuser, in a
-- database of Weir's own; then `weir migrate` as weir_owner; then grants.sql.
--
--   weir_owner      weir migrate, and the indexer, which makes and drops the partitions of knowledge bases
--   weir_ingester   intake and parsing: writes documents, creates and drops nothing
--   weir_retriever  reads and can do nothing else; may be used on a replica
--
-- The embedder has no database. No passwords are set here: use \password, or certificates.

CREATE EXTENSION IF NOT EXISTS vector;

CREATE ROLE weir_owner LOGIN;
CREATE ROLE weir_ingester LOGIN;
CREATE ROLE weir_retriever LOGIN;
ALTER ROLE weir_retriever SET default_transaction_read_only = on;

GRANT CREATE, USAGE ON SCHEMA public TO weir_owner;
GRANT USAGE ON SCHEMA public TO weir_ingester, weir_retriever;

-- The retriever reads partitions by their own names, so what the indexer makes later must be open to it.
ALTER DEFAULT PRIVILEGES FOR ROLE weir_owner IN SCHEMA public GRANT SELECT ON TABLES TO weir_retriever;
