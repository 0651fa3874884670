-- A dead letter knows whether it failed its version, so that the event is told though a newer version came before it.
-- Adding a column with a constant default rewrites nothing: ACCESS EXCLUSIVE for a moment. The index reads a table of few
-- rows.

-- +goose Up

ALTER TABLE dead_letters ADD COLUMN failed boolean NOT NULL DEFAULT false;
CREATE INDEX dead_letters_document ON dead_letters (kb_id, doc_id) WHERE kb_id IS NOT NULL;
