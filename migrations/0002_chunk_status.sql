-- Chunks set inactive by hand go back to active with a new version, which keeps how many they were. Adding
-- a column with a constant default rewrites nothing: ACCESS EXCLUSIVE for a moment.

-- +goose Up

ALTER TABLE document_versions ADD COLUMN reactivated int NOT NULL DEFAULT 0;
