-- A receipt keeps the first event of its submit or delete, so that a repeated one tells the same whatever has become of the
-- document since. Adding a column with a constant default rewrites nothing: ACCESS EXCLUSIVE for a moment. The update
-- writes receipts of deletes, of late submits and of changes of metadata; what is told of a repeated one written before, unchanged
-- as it was, is Pending.

-- +goose Up

ALTER TABLE document_receipts ADD COLUMN status text NOT NULL DEFAULT 'Pending'
    CHECK (status IN ('Pending', 'Ready', 'Superseded', 'Deleting', 'Deleted'));
UPDATE document_receipts SET status = CASE outcome WHEN 'deleted' THEN 'Deleted' WHEN 'superseded' THEN 'Superseded' ELSE 'Ready' END
WHERE outcome IN ('deleted', 'superseded', 'metadata');
