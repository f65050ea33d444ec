-- contract: entries have another primary key
-- Where a run has from what it writes: 0 a directory, else the tool of an archive, as in the contract (ImportProvider).
ALTER TABLE sync_runs ADD COLUMN origin BIGINT NOT NULL DEFAULT 0;
-- Of an archive: as it was sent, and how large it is.
ALTER TABLE sync_runs ADD COLUMN file_name TEXT;
ALTER TABLE sync_runs ADD COLUMN archive_bytes BIGINT NOT NULL DEFAULT 0;
-- How large an attachment may be, as the preview went by it: the same archive comes to the same plan.
ALTER TABLE sync_runs ADD COLUMN object_bytes BIGINT NOT NULL DEFAULT 0;

-- Two runs of one sync, or of one import, are never under way at once.
DROP INDEX sync_runs_busy;
CREATE UNIQUE INDEX sync_runs_busy ON sync_runs (workspace_id, origin, name) WHERE state IN (2, 3);

-- What imports remember stands beside what syncs remember. Their kinds: 3 asset, 4 database, 5 record.
CREATE TABLE sync_entries_by_origin (
    workspace_id TEXT NOT NULL,
    -- As in sync_runs.
    origin BIGINT NOT NULL,
    name TEXT NOT NULL,
    -- 1: file, 2: folder.
    kind BIGINT NOT NULL,
    path TEXT NOT NULL,
    item_id TEXT NOT NULL,
    version BIGINT NOT NULL,
    -- Empty for folders.
    content_hash TEXT NOT NULL,
    -- The run that wrote it.
    run_id TEXT NOT NULL,
    PRIMARY KEY (workspace_id, origin, name, kind, path)
) WITHOUT ROWID;
INSERT INTO sync_entries_by_origin
    SELECT workspace_id, 0, name, kind, path, item_id, version, content_hash, run_id FROM sync_entries;
DROP TABLE sync_entries;
ALTER TABLE sync_entries_by_origin RENAME TO sync_entries;
