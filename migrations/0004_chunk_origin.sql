-- Where in its source a chunk stands: slide, sheet, chapter, attachment, lines, kinds of its blocks. Adding a column
-- with a constant default rewrites nothing: ACCESS EXCLUSIVE on chunks and its partitions for a moment.

-- +goose Up

ALTER TABLE chunks ADD COLUMN origin jsonb NOT NULL DEFAULT '{}';
