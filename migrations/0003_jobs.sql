-- Jobs that build a second generation of a knowledge base beside the live one, and what is built in it. Adding
-- columns with a constant default rewrites nothing: ACCESS EXCLUSIVE on generations, a table of few rows, for a
-- moment.

-- +goose Up

ALTER TABLE generations
    ADD COLUMN changed_at timestamptz NOT NULL DEFAULT now(),          -- when it came into its state
    ADD COLUMN fingerprint text COLLATE "C" NOT NULL DEFAULT '';       -- of its analyzer's output; empty: not recorded
CREATE INDEX generations_kb ON generations (kb_id);

-- One request to build a knowledge base anew. Its row is the whole state of it: whoever holds the lease goes on
-- from there. It outlives the knowledge base, as a record.
CREATE TABLE jobs (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant         text COLLATE "C" NOT NULL,
    kb             text COLLATE "C" NOT NULL,
    kb_id          bigint NOT NULL,
    kind           text NOT NULL CHECK (kind IN ('reindex', 'repair')),
    state          text NOT NULL CHECK (state IN ('running', 'paused', 'waiting', 'done', 'cancelled', 'rolled_back')),
    phase          text NOT NULL DEFAULT 'build' CHECK (phase IN ('build', 'rollback')),
    reason         text NOT NULL DEFAULT '',           -- why it waits, or did not do what was asked
    source         bigint NOT NULL,                    -- generation that was live at the start
    target         bigint NOT NULL,                    -- generation that is built; that of source for a repair
    config         jsonb NOT NULL,                     -- full configuration of the target
    selector       jsonb,                              -- of a repair; null: all
    selected       boolean NOT NULL DEFAULT false,     -- the documents of a repair were chosen
    rate_limit     double precision NOT NULL DEFAULT 0,-- documents a second; 0: none
    max_failed     int NOT NULL DEFAULT 0,
    manual         boolean NOT NULL DEFAULT false,     -- wait for approval before the flip
    approved       boolean NOT NULL DEFAULT false,
    approver       text NOT NULL DEFAULT '',
    gate           jsonb,
    gate_result    jsonb,
    retain_seconds bigint NOT NULL,
    estimate       jsonb NOT NULL DEFAULT '{}',
    counts         jsonb NOT NULL DEFAULT '{}',
    skipped        bigint NOT NULL DEFAULT 0,          -- builds that a newer version or a delete made needless
    lease_owner    text NOT NULL DEFAULT '',
    lease_until    timestamptz NOT NULL DEFAULT '-infinity',
    fence          bigint NOT NULL DEFAULT 0,          -- raised with every lease: a former holder changes nothing
    created_at     timestamptz NOT NULL DEFAULT now(),
    updated_at     timestamptz NOT NULL DEFAULT now(),
    flipped_at     timestamptz,
    ended_at       timestamptz,
    retained_until timestamptz                         -- the source may be flipped back to until then
);
CREATE UNIQUE INDEX jobs_active ON jobs (kb_id) WHERE state IN ('running', 'paused', 'waiting');
CREATE INDEX jobs_tenant ON jobs (tenant, id DESC);
CREATE INDEX jobs_retained ON jobs (retained_until) WHERE state = 'done' AND retained_until IS NOT NULL;

-- What is to be built, or was, of a live version in a generation other than by its own submit. It goes with the
-- version's row, so a newer version or a delete leaves none.
CREATE TABLE document_builds (
    generation   bigint NOT NULL,
    document_key bigint NOT NULL,
    version      bigint NOT NULL,
    state        text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'done', 'failed')),
    wanted_at    timestamptz NOT NULL DEFAULT now(),   -- when it was, or was again, put on the list
    queued       boolean NOT NULL DEFAULT false,       -- its work was published
    run          int NOT NULL DEFAULT 0,               -- raised when work is published again on purpose
    chunks       int,                                  -- expected; null until staged
    reused       int NOT NULL DEFAULT 0,               -- of them, vectors known at staging
    tokens       bigint NOT NULL DEFAULT 0,            -- of all chunks, as the chunker counts
    embed_tokens bigint NOT NULL DEFAULT 0,            -- of those that had to be embedded
    title        text NOT NULL DEFAULT '',             -- found in the content
    warnings     text[] NOT NULL DEFAULT '{}',
    error        jsonb,                                -- why it failed
    attempts     int NOT NULL DEFAULT 0,
    updated_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (document_key, version, generation),
    FOREIGN KEY (document_key, version) REFERENCES document_versions (document_key, version) ON DELETE CASCADE
);
CREATE INDEX document_builds_generation ON document_builds (generation);
CREATE INDEX document_builds_unqueued ON document_builds (generation, document_key) WHERE state = 'pending' AND NOT queued;
CREATE INDEX document_builds_queued ON document_builds (generation, document_key) WHERE state = 'pending' AND queued;
CREATE INDEX document_builds_failed ON document_builds (generation, document_key) WHERE state = 'failed';
