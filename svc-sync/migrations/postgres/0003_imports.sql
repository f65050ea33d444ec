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
ALTER TABLE sync_entries ADD COLUMN origin BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sync_entries DROP CONSTRAINT sync_entries_pkey;
ALTER TABLE sync_entries ADD PRIMARY KEY (workspace_id, origin, name, kind, path);
