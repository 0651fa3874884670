-- Indexes that keep intake and upkeep from reading more as tables grow: the newest receipt of a version, however often its
-- document was published again, and tombstones among all documents. Building them holds writes to each table meanwhile, about
-- a second for each million of rows; the index that the first replaces goes in a moment.

-- +goose Up

CREATE INDEX document_receipts_order ON document_receipts (document_key, version, order_ns, order_seq);
DROP INDEX document_receipts_version;
CREATE INDEX documents_deleted ON documents (updated_at) WHERE status = 'Deleted';
