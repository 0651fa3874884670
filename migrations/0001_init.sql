-- The first schema. Everything here is created in an empty database, so no lock matters.
-- Strings compare and sort as UTF-8 bytes (COLLATE "C") whatever the cluster's locale.

-- +goose Up

CREATE EXTENSION IF NOT EXISTS vector;

-- A knowledge base. Its id is never used again, so late work of a deleted one changes nothing in a
-- new one of the same name. A deleted one keeps its row until its data is gone.
CREATE TABLE knowledge_bases (
    id               bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant           text COLLATE "C" NOT NULL,
    name             text COLLATE "C" NOT NULL,
    revision         bigint NOT NULL DEFAULT 1,        -- raised by every change that readers must see
    index_type       text NOT NULL CHECK (index_type IN ('hybrid', 'vector', 'bm25')),
    subspaces        boolean NOT NULL DEFAULT false,
    metadata_schema  jsonb NOT NULL DEFAULT '[]',
    description      text NOT NULL DEFAULT '',
    tags             jsonb NOT NULL DEFAULT '{}',
    retrieval        jsonb,                            -- default retrieval configuration
    mandatory_filter jsonb,
    created_at       timestamptz NOT NULL DEFAULT now(),
    updated_at       timestamptz NOT NULL DEFAULT now(),
    deleted_at       timestamptz
);
CREATE UNIQUE INDEX knowledge_bases_name ON knowledge_bases (tenant, name) WHERE deleted_at IS NULL;

-- One immutable indexing configuration of a knowledge base.
CREATE TABLE generations (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kb_id      bigint NOT NULL REFERENCES knowledge_bases (id),
    state      text NOT NULL CHECK (state IN ('live', 'building', 'retained', 'dead')),
    space      jsonb,                                  -- the embedding space; null without vectors
    dims       int,
    parser     text NOT NULL,
    chunking   jsonb NOT NULL,
    analyzer   text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CHECK ((space IS NULL) = (dims IS NULL))
);
CREATE UNIQUE INDEX generations_live ON generations (kb_id) WHERE state = 'live';
CREATE UNIQUE INDEX generations_building ON generations (kb_id) WHERE state = 'building';

-- Stored contents, addressed by their SHA-256 within a knowledge base, in parts of 1 MiB.
CREATE TABLE blobs (
    kb_id      bigint NOT NULL REFERENCES knowledge_bases (id),
    sha256     bytea NOT NULL,
    size_bytes bigint NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (kb_id, sha256)
);
CREATE TABLE blob_parts (
    kb_id  bigint NOT NULL,
    sha256 bytea NOT NULL,
    part   int NOT NULL,
    data   bytea NOT NULL,
    PRIMARY KEY (kb_id, sha256, part)
);
-- Most contents are compressed already, and trying costs more than storing.
ALTER TABLE blob_parts ALTER COLUMN data SET STORAGE EXTERNAL;

-- A document: its identity, the state of its newest accepted version, and what readers see of it. A
-- deleted one stays as a tombstone (status Deleted, no live version) that fences late work.
CREATE TABLE documents (
    key           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kb_id         bigint NOT NULL REFERENCES knowledge_bases (id),
    subspace      text COLLATE "C" NOT NULL,
    doc_id        text COLLATE "C" NOT NULL,
    version       bigint NOT NULL,                     -- newest accepted, deletes included; 0 while the first is being accepted
    status        text NOT NULL CHECK (status IN ('Pending', 'Indexing', 'Ready', 'Failed', 'Deleting', 'Deleted')),
    order_ns      bigint NOT NULL,                     -- store time of the newest accepted submit, Unix nanoseconds
    order_seq     bigint NOT NULL,                     -- and its stream sequence
    live_version  bigint,                              -- what readers see; null: nothing
    live_title    text COLLATE "C" NOT NULL DEFAULT '',
    live_oss_key  text COLLATE "C" NOT NULL DEFAULT '',
    live_metadata jsonb NOT NULL DEFAULT '{}',         -- as supplied
    live_typed    jsonb NOT NULL DEFAULT '{}',         -- the same as filters compare it
    updated_at    timestamptz NOT NULL DEFAULT now(),
    UNIQUE (kb_id, subspace, doc_id)
);
CREATE INDEX documents_open ON documents (key) WHERE status IN ('Pending', 'Indexing');

-- What an accepted version was submitted with and how far it came. Rows of versions that are neither
-- newest nor live are removed.
CREATE TABLE document_versions (
    document_key bigint NOT NULL REFERENCES documents (key) ON DELETE CASCADE,
    version      bigint NOT NULL,
    kb_id        bigint NOT NULL,
    generation   bigint NOT NULL,                      -- that it was accepted for
    title        text NOT NULL,
    oss_key      text NOT NULL,
    content_type text NOT NULL,
    metadata     jsonb NOT NULL,                       -- as supplied
    typed        jsonb NOT NULL,                       -- the same as filters compare it
    sha256       bytea NOT NULL,                       -- of its blob
    size_bytes   bigint NOT NULL,
    submitted_at timestamptz NOT NULL DEFAULT now(),
    parsed_title text NOT NULL DEFAULT '',             -- found in the content, used where the submit gave none
    chunks       int,                                  -- expected chunks; null until staged
    reused       int NOT NULL DEFAULT 0,               -- of them, vectors known at staging
    tokens       int NOT NULL DEFAULT 0,               -- of all chunks, as the chunker counts
    warnings     text[] NOT NULL DEFAULT '{}',
    error        jsonb,                                -- why it failed
    attempts     int NOT NULL DEFAULT 0,               -- of the message that failed
    run          int NOT NULL DEFAULT 0,               -- raised when work is published again on purpose
    PRIMARY KEY (document_key, version)
);
CREATE INDEX document_versions_blob ON document_versions (kb_id, sha256);

-- What became of each submit and delete, found again when the same one is delivered twice.
CREATE TABLE document_receipts (
    source       text COLLATE "C" PRIMARY KEY,         -- stream creation time and sequence, or the caller's key
    kb_id        bigint NOT NULL,
    document_key bigint NOT NULL,
    version      bigint NOT NULL,                      -- that answers the submit
    order_ns     bigint NOT NULL,
    order_seq    bigint NOT NULL,
    submit_id    text NOT NULL,
    outcome      text NOT NULL CHECK (outcome IN ('accepted', 'unchanged', 'metadata', 'superseded', 'deleted')),
    overtaken    bigint,                               -- the open version that this one superseded
    created_at   timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX document_receipts_version ON document_receipts (document_key, version);
CREATE INDEX document_receipts_age ON document_receipts (created_at);

CREATE SEQUENCE chunk_ids CACHE 64;

-- Chunks and vectors of versions that are not complete yet. Insert only; removed by the swap. They are not
-- logged: a crash of the server empties them, and what they held is parsed again from the stored content.
-- A row holds some chunks, as the fields that the swap copies into chunks: nothing but the swap and a
-- repeated hand-off reads them, and both read all.
CREATE UNLOGGED TABLE staged_chunks (
    generation   bigint NOT NULL,
    document_key bigint NOT NULL,
    version      bigint NOT NULL,
    ordinal      int NOT NULL,                         -- of the first chunk
    chunks       int NOT NULL,                         -- how many
    layout       int NOT NULL,                         -- which fields
    rows         bytea NOT NULL,
    PRIMARY KEY (document_key, version, generation, ordinal)
);
CREATE UNLOGGED TABLE staged_vectors (
    generation   bigint NOT NULL,
    document_key bigint NOT NULL,
    version      bigint NOT NULL,
    ordinal      int NOT NULL,
    embedding    halfvec NOT NULL,
    PRIMARY KEY (document_key, version, generation, ordinal)
);

-- They live for seconds: keep them in line and spend nothing on compressing them.
ALTER TABLE staged_chunks ALTER COLUMN rows SET STORAGE EXTERNAL;
ALTER TABLE staged_chunks SET (toast_tuple_target = 8160);
ALTER TABLE staged_vectors ALTER COLUMN embedding SET STORAGE EXTERNAL;

-- The chunks readers see: only those of live versions. One partition a generation, made and attached
-- when the generation is, so that each has its own vector index and can be dropped whole. Text
-- and lexemes go out of line first, so that a scan of the vectors reads little else.
CREATE TABLE chunks (
    generation   bigint NOT NULL,
    chunk_id     bigint NOT NULL,
    document_key bigint NOT NULL,
    version      bigint NOT NULL,
    ordinal      int NOT NULL,
    page_from    int NOT NULL,
    page_to      int NOT NULL,
    tokens       int NOT NULL,
    lex_len      int NOT NULL,                         -- length for BM25
    active       boolean NOT NULL DEFAULT true,
    embedding    halfvec,                              -- before all other long columns: a scan of vectors reads no further
    heading_path text[] NOT NULL,
    context      text NOT NULL,                        -- title and headings as embedded and analysed
    content      text NOT NULL,
    hash         bytea NOT NULL,                       -- SHA-256 of the exact string sent to the model
    lex          tsvector NOT NULL,                    -- lexemes and positions, never made by to_tsvector
    PRIMARY KEY (generation, chunk_id)
) PARTITION BY LIST (generation);
ALTER TABLE chunks ALTER COLUMN embedding SET STORAGE PLAIN, ALTER COLUMN hash SET STORAGE PLAIN,
                   ALTER COLUMN heading_path SET STORAGE MAIN, ALTER COLUMN context SET STORAGE MAIN;
CREATE UNIQUE INDEX chunks_document ON chunks (generation, document_key, version, ordinal);
CREATE INDEX chunks_hash ON chunks (hash);
CREATE INDEX chunks_inactive ON chunks (chunk_id) WHERE NOT active;

-- Immutable posting segments (docs/adr: segments in Postgres).
CREATE TABLE lex_segment (
    generation bigint NOT NULL,
    seg        bigint GENERATED ALWAYS AS IDENTITY,
    n_docs     int NOT NULL,
    sum_len    bigint NOT NULL,
    chunk_ids  bytea NOT NULL,                         -- ordinal -> chunk id, 8 bytes each, little endian
    lens       bytea NOT NULL,                         -- ordinal -> length, 2 bytes each, little endian
    PRIMARY KEY (generation, seg)
);
CREATE TABLE lex_posting (
    generation bigint NOT NULL,
    term       bigint NOT NULL,                        -- 64-bit hash of the lexeme
    seg        bigint NOT NULL,
    n          int NOT NULL,                           -- postings in this row
    data       bytea NOT NULL,
    PRIMARY KEY (generation, seg, term)                -- a segment is written, merged and dropped as one run
);
ALTER TABLE lex_posting ALTER COLUMN data SET STORAGE EXTERNAL;
ALTER TABLE lex_posting SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.1);
-- Chunks that left the live set but still stand in a segment.
CREATE TABLE lex_tombstone (
    generation bigint NOT NULL,
    chunk_id   bigint NOT NULL,
    len        int NOT NULL,
    PRIMARY KEY (generation, chunk_id)
);

-- Messages that could not be processed, with what is needed to publish them again.
CREATE TABLE dead_letters (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    source     text COLLATE "C" NOT NULL UNIQUE,       -- identity of the message, so that it is recorded once
    tenant     text COLLATE "C" NOT NULL,
    kb         text COLLATE "C" NOT NULL,
    kb_id      bigint,
    subspace   text COLLATE "C" NOT NULL DEFAULT '',
    doc_id     text COLLATE "C" NOT NULL DEFAULT '',
    version    bigint,
    stage      text NOT NULL,
    error      jsonb NOT NULL,
    attempts   int NOT NULL,
    subject    text NOT NULL,
    headers    jsonb NOT NULL,
    body       bytea NOT NULL,
    state      text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'replayed', 'discarded')),
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX dead_letters_tenant ON dead_letters (tenant, id DESC);
