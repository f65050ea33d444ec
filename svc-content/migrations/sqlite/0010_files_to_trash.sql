-- expand
-- Moving a file to trash, as a folder takes its files along, changes few indexes: every one costs a page for each few
-- files. The one by name stays, for the live files of a workspace are counted by it.
DROP INDEX files_by_deletion;
DROP INDEX files_by_any_folder;
DROP INDEX files_by_folder;

CREATE INDEX files_by_folder ON files (workspace_id, folder_id, name, id);
