-- expand
-- Moving a file to trash, as a folder takes its files along, changes no column that an index has: PostgreSQL then writes
-- the new row beside the old one and leaves the indexes alone. For that a page keeps room for its rows a second time.
ALTER TABLE files SET (fillfactor = 50);

DROP INDEX files_by_deletion;
DROP INDEX files_by_any_folder;
DROP INDEX files_by_folder;
DROP INDEX files_by_name;

CREATE INDEX files_by_folder ON files (workspace_id, folder_id, name, id);
CREATE INDEX files_by_name ON files (workspace_id, name, id);
