-- expand
-- What a workspace is connected to.
CREATE TABLE sources (
    workspace_id TEXT NOT NULL,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    -- The name as a part of a path, unique in its workspace.
    folder TEXT NOT NULL,
    provider TEXT NOT NULL,
    mode BIGINT NOT NULL,
    -- The provider's own shape, JSON.
    settings TEXT NOT NULL,
    -- The provider's own shape, JSON, sealed as the next column says.
    credentials BLOB,
    sealing TEXT NOT NULL,
    credential_hint TEXT,
    account TEXT,
    every_seconds BIGINT NOT NULL,
    -- Of live calls, a day.
    daily_budget BIGINT NOT NULL,
    paused BOOLEAN NOT NULL,
    needs_credentials BOOLEAN NOT NULL,
    -- Why the last run failed.
    error TEXT,
    -- Where the changes go on, of the last run that read everything.
    position TEXT,
    -- The provider wants to be left alone until then.
    not_before BIGINT,
    -- Runs that failed since one did not.
    failures BIGINT NOT NULL,
    -- When a run is due; never, when absent.
    next_run_at BIGINT,
    -- Whether that run begins anew.
    full_next BOOLEAN NOT NULL,
    -- The end of the last complete listing.
    listed_at BIGINT,
    last_synced_at BIGINT,
    -- Those that everybody sees.
    documents BIGINT NOT NULL,
    -- Set once: what is left goes from then on.
    disconnected_at BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, id)
) WITHOUT ROWID;

CREATE UNIQUE INDEX sources_by_folder ON sources (workspace_id, folder) WHERE disconnected_at IS NULL;
CREATE INDEX sources_due ON sources (next_run_at) WHERE next_run_at IS NOT NULL;
CREATE INDEX sources_disconnected ON sources (disconnected_at) WHERE disconnected_at IS NOT NULL;

CREATE TABLE source_runs (
    workspace_id TEXT NOT NULL,
    source_id TEXT NOT NULL,
    id TEXT NOT NULL,
    kind BIGINT NOT NULL,
    state BIGINT NOT NULL,
    -- What of the run is done: faults tried again, pages read, absent documents removed.
    stage BIGINT NOT NULL,
    -- The run that began this listing; itself, unless it goes on where another stopped.
    listing TEXT NOT NULL,
    -- The checkpoint: where the next page begins; after the last page, where changes go on.
    position TEXT,
    -- What is to be done with documents that the listing lacks.
    absent BIGINT NOT NULL,
    -- Prefixes of ids that the listing left out, JSON; absent when nothing is concluded from absence.
    spared TEXT,
    complete BOOLEAN NOT NULL,
    listed BIGINT NOT NULL,
    fetched BIGINT NOT NULL,
    unchanged BIGINT NOT NULL,
    created BIGINT NOT NULL,
    updated BIGINT NOT NULL,
    removed BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    operations BIGINT NOT NULL,
    warnings TEXT NOT NULL,
    error TEXT,
    holder TEXT,
    lease_until BIGINT,
    -- Workers that were lost since the last checkpoint.
    lost BIGINT NOT NULL,
    -- Tries that failed since the last checkpoint.
    tries BIGINT NOT NULL,
    waiting_until BIGINT,
    cancel_asked BOOLEAN NOT NULL,
    created_at BIGINT NOT NULL,
    started_at BIGINT,
    finished_at BIGINT,
    PRIMARY KEY (workspace_id, source_id, id)
) WITHOUT ROWID;

-- A source has one run that is not over.
CREATE UNIQUE INDEX source_runs_open ON source_runs (workspace_id, source_id) WHERE state < 4;
CREATE INDEX source_runs_waiting ON source_runs (created_at) WHERE state < 4;

CREATE TABLE source_documents (
    workspace_id TEXT NOT NULL,
    id TEXT NOT NULL,
    source_id TEXT NOT NULL,
    -- The provider's.
    external_id TEXT NOT NULL,
    title TEXT NOT NULL,
    -- Below the source's folder.
    path TEXT NOT NULL,
    mime_type TEXT NOT NULL,
    url TEXT,
    -- The provider's time of the last change, where it tells one.
    updated_at BIGINT,
    version TEXT,
    format BIGINT NOT NULL,
    size_bytes BIGINT NOT NULL,
    -- Of the retained text; absent when there is none.
    content_hash TEXT,
    state BIGINT NOT NULL,
    -- What retrieval said of the text that is retained now.
    index_state BIGINT NOT NULL,
    chunk_count BIGINT,
    indexed_at BIGINT,
    index_error TEXT,
    -- Why it was not read the last time.
    error TEXT,
    tries BIGINT NOT NULL,
    -- Never again, when absent beside an error: until the version changes.
    next_try BIGINT,
    seen_listing TEXT,
    -- Absent from listings since, or answered as gone since.
    missing_since BIGINT,
    -- Complete listings in a row that lacked it.
    misses BIGINT NOT NULL,
    hidden_at BIGINT,
    created_at BIGINT NOT NULL,
    -- When what is kept changed last.
    changed_at BIGINT NOT NULL,
    -- When a run found it last.
    synced_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, id),
    FOREIGN KEY (workspace_id, content_hash) REFERENCES bodies (workspace_id, hash)
) WITHOUT ROWID;

CREATE UNIQUE INDEX source_documents_by_external_id ON source_documents (workspace_id, source_id, external_id);
CREATE INDEX source_documents_by_source ON source_documents (workspace_id, source_id, title, id);
CREATE INDEX source_documents_by_title ON source_documents (workspace_id, title, id);
CREATE INDEX source_documents_by_body ON source_documents (workspace_id, content_hash) WHERE content_hash IS NOT NULL;
CREATE INDEX source_documents_by_try ON source_documents (workspace_id, source_id, next_try) WHERE next_try IS NOT NULL;
CREATE INDEX source_documents_hidden ON source_documents (hidden_at) WHERE hidden_at IS NOT NULL;

CREATE TABLE provider_operations (
    workspace_id TEXT NOT NULL,
    source_id TEXT NOT NULL,
    -- Days since 1970, UTC.
    day BIGINT NOT NULL,
    ledger BIGINT NOT NULL,
    used BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, source_id, day, ledger)
) WITHOUT ROWID;
