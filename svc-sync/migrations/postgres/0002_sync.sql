-- expand
-- One reconciliation of a directory with the files of a workspace, planned, under way or over.
CREATE TABLE sync_runs (
    workspace_id TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    -- Of the sync, which has many runs.
    name TEXT COLLATE "C" NOT NULL,
    -- Where the directory goes; the root, when absent.
    folder_id TEXT COLLATE "C",
    policy BIGINT NOT NULL,
    prune BOOLEAN NOT NULL,
    -- As in the contract (RunStatus).
    state BIGINT NOT NULL,
    -- 1: it is carried out, 2: it is rolled back.
    phase BIGINT NOT NULL,
    -- Who started what is under way.
    asker_kind TEXT COLLATE "C" NOT NULL,
    asker_id TEXT COLLATE "C" NOT NULL,
    created BIGINT NOT NULL,
    updated BIGINT NOT NULL,
    skipped BIGINT NOT NULL,
    conflicts BIGINT NOT NULL,
    pruned BIGINT NOT NULL,
    processed BIGINT NOT NULL,
    total BIGINT NOT NULL,
    would_create BIGINT NOT NULL,
    would_update BIGINT NOT NULL,
    would_skip BIGINT NOT NULL,
    would_conflict BIGINT NOT NULL,
    -- Documents of the manifest.
    documents BIGINT NOT NULL,
    -- Bytes of the texts that are kept until the run is over.
    bytes BIGINT NOT NULL,
    error TEXT COLLATE "C",
    -- Workers in a row that were lost, or gave up for now, without a step done.
    tries BIGINT NOT NULL,
    not_before BIGINT,
    cancel_asked BOOLEAN NOT NULL,
    holder TEXT COLLATE "C",
    lease_until BIGINT,
    created_at BIGINT NOT NULL,
    started_at BIGINT,
    finished_at BIGINT,
    rollback_until BIGINT,
    PRIMARY KEY (workspace_id, id)
);

-- Two runs of one sync are never under way at once.
CREATE UNIQUE INDEX sync_runs_busy ON sync_runs (workspace_id, name) WHERE state IN (2, 3);

CREATE INDEX sync_runs_due ON sync_runs (created_at) WHERE state IN (2, 3);

-- What is known of a run at length: JSON, compressed.
CREATE TABLE sync_details (
    workspace_id TEXT COLLATE "C" NOT NULL,
    run_id TEXT COLLATE "C" NOT NULL,
    -- The documents of the manifest without their texts, and what the preview noted.
    manifest BYTEA NOT NULL,
    -- Documents that nothing was written for, and why.
    stills BYTEA NOT NULL,
    -- What a rollback left alone, and why.
    kept BYTEA NOT NULL,
    PRIMARY KEY (workspace_id, run_id)
);

-- The texts of documents that may have to be written, many to a piece, compressed; until the run is over.
CREATE TABLE sync_pieces (
    workspace_id TEXT COLLATE "C" NOT NULL,
    run_id TEXT COLLATE "C" NOT NULL,
    place BIGINT NOT NULL,
    data BYTEA NOT NULL,
    PRIMARY KEY (workspace_id, run_id, place)
);

-- Writes to content that are carried out together: noted before, and settled after.
CREATE TABLE sync_batches (
    workspace_id TEXT COLLATE "C" NOT NULL,
    run_id TEXT COLLATE "C" NOT NULL,
    phase BIGINT NOT NULL,
    place BIGINT NOT NULL,
    -- Whether all steps are known to be done.
    settled BOOLEAN NOT NULL,
    -- JSON, compressed.
    steps BYTEA NOT NULL,
    PRIMARY KEY (workspace_id, run_id, phase, place)
);

-- What the runs of a sync have written, and how it stood then.
CREATE TABLE sync_entries (
    workspace_id TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    -- 1: file, 2: folder.
    kind BIGINT NOT NULL,
    path TEXT COLLATE "C" NOT NULL,
    item_id TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    -- Empty for folders.
    content_hash TEXT COLLATE "C" NOT NULL,
    -- The run that wrote it.
    run_id TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (workspace_id, name, kind, path)
);
