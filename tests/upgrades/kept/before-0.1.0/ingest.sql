CREATE TABLE migrations (name TEXT NOT NULL PRIMARY KEY, hash TEXT NOT NULL, step TEXT, version TEXT);
CREATE TABLE feed_heads (
    workspace_id TEXT NOT NULL PRIMARY KEY,
    position BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
, forgotten BIGINT NOT NULL DEFAULT 0) WITHOUT ROWID;
CREATE TABLE feed_changes (
    workspace_id TEXT NOT NULL,
    position BIGINT NOT NULL,
    kind BIGINT NOT NULL,
    item_id TEXT NOT NULL,
    op BIGINT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, position)
) WITHOUT ROWID;
CREATE TABLE bodies (
    workspace_id TEXT NOT NULL,
    hash TEXT NOT NULL,
    encoding BIGINT NOT NULL,
    size_bytes BIGINT NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (workspace_id, hash)
);
CREATE TABLE ingested_documents (
    workspace_id TEXT NOT NULL,
    id TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    sent_hash TEXT NOT NULL,
    title TEXT NOT NULL,
    name TEXT,
    url TEXT,
    external_id TEXT,
    metadata TEXT,
    occurred_at BIGINT,
    status BIGINT NOT NULL,
    format BIGINT,
    content_hash TEXT,
    size_bytes BIGINT NOT NULL,
    chunk_count BIGINT,
    indexed_at BIGINT,
    error TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, id),
    FOREIGN KEY (workspace_id, content_hash) REFERENCES bodies (workspace_id, hash)
) WITHOUT ROWID;
CREATE TABLE workspace_usage (
    workspace_id TEXT NOT NULL,
    documents BIGINT NOT NULL,
    bytes BIGINT NOT NULL, plan TEXT,
    PRIMARY KEY (workspace_id)
) WITHOUT ROWID;
CREATE TABLE leases (
    name TEXT NOT NULL PRIMARY KEY,
    holder TEXT NOT NULL,
    expires_at BIGINT NOT NULL
) WITHOUT ROWID;
CREATE TABLE workspace_states (
    workspace_id TEXT NOT NULL PRIMARY KEY,
    -- Rises with each change: what is older changes nothing.
    revision BIGINT NOT NULL,
    suspended BOOLEAN NOT NULL,
    -- Whether nothing of it is left here.
    purged BOOLEAN NOT NULL,
    changed_at BIGINT NOT NULL
) WITHOUT ROWID;
CREATE TABLE extractions (
    workspace_id TEXT NOT NULL,
    document_id TEXT NOT NULL,
    file_name TEXT,
    mime_type TEXT,
    is_html BOOLEAN NOT NULL,
    size_bytes BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    holder TEXT,
    due_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, document_id),
    FOREIGN KEY (workspace_id, document_id) REFERENCES ingested_documents (workspace_id, id)
) WITHOUT ROWID;
CREATE TABLE upload_pieces (
    workspace_id TEXT NOT NULL,
    document_id TEXT NOT NULL,
    place BIGINT NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (workspace_id, document_id, place)
);
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
CREATE TABLE provider_operations (
    workspace_id TEXT NOT NULL,
    source_id TEXT NOT NULL,
    -- Days since 1970, UTC.
    day BIGINT NOT NULL,
    ledger BIGINT NOT NULL,
    used BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, source_id, day, ledger)
) WITHOUT ROWID;
CREATE TABLE webhooks (
    workspace_id TEXT NOT NULL,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    url TEXT NOT NULL,
    -- JSON lists; empty: all kinds, the whole workspace.
    kinds TEXT NOT NULL,
    folders TEXT NOT NULL,
    enabled BOOLEAN NOT NULL,
    -- Why, when nobody disabled it by hand.
    disabled_reason TEXT,
    -- The person for whom it acts.
    acts_for TEXT NOT NULL,
    acts_for_name TEXT NOT NULL,
    -- The secrets that sign, sealed.
    secrets BLOB NOT NULL,
    sealing TEXT NOT NULL,
    -- Until when the secret before the last one signs as well.
    previous_until BIGINT,
    -- How far the feeds were read for it.
    content_position BIGINT NOT NULL,
    ingest_position BIGINT NOT NULL,
    -- When somebody is to look after it.
    look_at BIGINT NOT NULL,
    holder TEXT,
    lease_until BIGINT,
    refused_since BIGINT,
    -- Deliveries that were given up since one arrived.
    given_up BIGINT NOT NULL,
    last_tried_at BIGINT,
    last_delivered_at BIGINT,
    last_status BIGINT,
    last_error TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, id)
) WITHOUT ROWID;
CREATE TABLE webhook_deliveries (
    workspace_id TEXT NOT NULL,
    webhook_id TEXT NOT NULL,
    id TEXT NOT NULL,
    -- 1 pending, 2 delivered, 3 dead, 4 replaying.
    state BIGINT NOT NULL,
    -- A JSON list of entries of the feed, without any content; empty when they have arrived.
    changes TEXT NOT NULL,
    change_count BIGINT NOT NULL,
    next_place TEXT NOT NULL,
    tries BIGINT NOT NULL,
    next_try_at BIGINT,
    last_tried_at BIGINT,
    last_status BIGINT,
    last_error TEXT,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, webhook_id, id)
) WITHOUT ROWID;
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0001_feed', 'fc758f9d201717b68fc48fa52957075af2274e08918a7774fc7f6cfd5fb9a6da', 'expand', '0.1.0');
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0002_documents', '669f0f2c877c2ad903509fd0c3793317d8a32469b6cd13618987ab7a9528a556', 'expand', '0.1.0');
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0001_leases', '08e3fd209edc14944dd2ebbbb4cb29ea35c6ce31d43f6f9a819aec68696596b9', 'expand', '0.1.0');
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0001_workspace_states', 'dbc2f3e8d29966c61bd5789f6a24b417338a09610e82583b50457896cdd08b61', 'expand', '0.1.0');
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0003_extractions', 'be5a8b5b2ca24522cab4aa10f5f7e0dcdd33f34cb6ed9e1aa72ac6ca31f31c03', 'expand', '0.1.0');
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0010_sources', '906bcbb396bdd4365c2634e2165a6b5baf202517acd9e7a82d3155481c48bcf2', 'expand', '0.1.0');
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0011_extraction_turns', '635edbd0a47162be0f61d725fad355e8ee080a55e836ee283d18da18f20f46d9', 'expand', '0.1.0');
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0012_plan', 'cad1249c0dd7349a476689fea73bb42cbc1e4764ebd1a6d5e66d6476442a23d8', 'expand', '0.1.0');
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0013_webhooks', '5c8994e9f03d76274111685c6825685bccc7b0a37609b45517595e420214dfe3', 'expand', '0.1.0');
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0002_feed_forgotten', '460b6affcc8c9bc588904f2e10816073e7b5355f60aa7c386cdfceb99ad68094', 'expand', '0.1.0');
INSERT INTO "feed_heads" ("workspace_id", "position", "updated_at", "forgotten") VALUES ('01a22379-1167-7358-bf7b-21787192759a', 1, 1795891565089225, 0);
INSERT INTO "feed_changes" ("workspace_id", "position", "kind", "item_id", "op", "at") VALUES ('01a22379-1167-7358-bf7b-21787192759a', 1, 7, '01a2237a-9221-7c90-8074-c16bf5ddc303', 1, 1795891565089225);
INSERT INTO "bodies" ("workspace_id", "hash", "encoding", "size_bytes", "data") VALUES ('01a22379-1167-7358-bf7b-21787192759a', 'blake3:700d1fed9e035d3dd97b8237238a51839b9d3c7bf61ebe068501914a7a94d401', 0, 31, X'5468652071756F6B6B61206B65657073207468652068616E64626F6F6B2E0A');
INSERT INTO "ingested_documents" ("workspace_id", "id", "idempotency_key", "sent_hash", "title", "name", "url", "external_id", "metadata", "occurred_at", "status", "format", "content_hash", "size_bytes", "chunk_count", "indexed_at", "error", "created_at", "updated_at") VALUES ('01a22379-1167-7358-bf7b-21787192759a', '01a2237a-9221-7c90-8074-c16bf5ddc303', 'kept', 'blake3:700d1fed9e035d3dd97b8237238a51839b9d3c7bf61ebe068501914a7a94d401', 'Handbook', 'Handbook.txt', NULL, NULL, NULL, NULL, 3, 4, 'blake3:700d1fed9e035d3dd97b8237238a51839b9d3c7bf61ebe068501914a7a94d401', 31, 1, 1795891565143846, NULL, 1795891565089225, 1795891565143846);
INSERT INTO "workspace_usage" ("workspace_id", "documents", "bytes", "plan") VALUES ('01a22379-1167-7358-bf7b-21787192759a', 1, 31, NULL);
CREATE INDEX feed_heads_by_updated_at ON feed_heads (updated_at);
CREATE UNIQUE INDEX ingested_documents_by_key ON ingested_documents (workspace_id, idempotency_key);
CREATE UNIQUE INDEX ingested_documents_by_name ON ingested_documents (workspace_id, name);
CREATE INDEX ingested_documents_by_status ON ingested_documents (workspace_id, status, id);
CREATE INDEX ingested_documents_by_content ON ingested_documents (workspace_id, content_hash);
CREATE INDEX extractions_by_time ON extractions (due_at);
CREATE UNIQUE INDEX sources_by_folder ON sources (workspace_id, folder) WHERE disconnected_at IS NULL;
CREATE INDEX sources_due ON sources (next_run_at) WHERE next_run_at IS NOT NULL;
CREATE INDEX sources_disconnected ON sources (disconnected_at) WHERE disconnected_at IS NOT NULL;
CREATE UNIQUE INDEX source_runs_open ON source_runs (workspace_id, source_id) WHERE state < 4;
CREATE INDEX source_runs_waiting ON source_runs (created_at) WHERE state < 4;
CREATE UNIQUE INDEX source_documents_by_external_id ON source_documents (workspace_id, source_id, external_id);
CREATE INDEX source_documents_by_source ON source_documents (workspace_id, source_id, title, id);
CREATE INDEX source_documents_by_title ON source_documents (workspace_id, title, id);
CREATE INDEX source_documents_by_body ON source_documents (workspace_id, content_hash) WHERE content_hash IS NOT NULL;
CREATE INDEX source_documents_by_try ON source_documents (workspace_id, source_id, next_try) WHERE next_try IS NOT NULL;
CREATE INDEX source_documents_hidden ON source_documents (hidden_at) WHERE hidden_at IS NOT NULL;
CREATE INDEX extractions_by_workspace ON extractions (workspace_id, due_at);
CREATE INDEX webhooks_due ON webhooks (look_at) WHERE enabled;
CREATE UNIQUE INDEX webhook_deliveries_pending ON webhook_deliveries (workspace_id, webhook_id) WHERE state = 1;
CREATE INDEX webhook_deliveries_by_state ON webhook_deliveries (workspace_id, webhook_id, state, id);
CREATE INDEX webhook_deliveries_dead ON webhook_deliveries (created_at) WHERE state = 3;
