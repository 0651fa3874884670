-- Files of JSON lines that are split: each line is a document of its own that knows its file. Adding columns that are
-- null or have a constant default rewrites nothing: ACCESS EXCLUSIVE for a moment. The index reads documents once
-- and holds writes to it meanwhile, about a second for each million of rows.

-- +goose Up

ALTER TABLE documents
    ADD COLUMN parent_key bigint,                      -- of a line: the document that it is a line of
    ADD COLUMN parent_version bigint,                  -- and the newest version of that which has it
    ADD COLUMN parent_line int;                        -- and its number there, from 1; null: it could not be read, so it stays as it was
CREATE INDEX documents_lines ON documents (parent_key, key) WHERE parent_key IS NOT NULL;

ALTER TABLE document_versions ADD COLUMN split boolean NOT NULL DEFAULT false; -- its lines are documents of their own

-- How far the splitting of a document came: a row for each that ever was split, about its newest such version.
CREATE TABLE document_splits (
    document_key bigint PRIMARY KEY REFERENCES documents (key) ON DELETE CASCADE,
    version      bigint NOT NULL,
    state        text NOT NULL CHECK (state IN ('splitting', 'waiting', 'done')),
    lines        jsonb NOT NULL DEFAULT '{}',          -- what became of them
    remove_below bigint NOT NULL DEFAULT 0,            -- lines of older versions are to be removed; 0: of none
    replaced     bigint NOT NULL DEFAULT 0             -- version that is not split: once it is Ready, older lines go; 0: none
);
CREATE INDEX document_splits_open ON document_splits (document_key) WHERE state = 'waiting' OR remove_below > 0 OR replaced > 0;

-- Ends of split versions, and of deletes of split documents, whose events are not published yet.
CREATE TABLE split_ends (
    document_key bigint NOT NULL REFERENCES documents (key) ON DELETE CASCADE,
    version      bigint NOT NULL,
    status       text NOT NULL CHECK (status IN ('Ready', 'Failed', 'Deleted')),
    lines        jsonb,
    error        jsonb,
    PRIMARY KEY (document_key, version)
);
