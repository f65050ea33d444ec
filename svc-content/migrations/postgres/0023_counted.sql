-- expand
-- How many files of a workspace live is what it keeps less what is in trash.
CREATE INDEX files_in_trash ON files (workspace_id, deletion_id) WHERE deletion_id IS NOT NULL;
-- What its files take is told from an index, not from the bodies.
CREATE INDEX bodies_by_size ON bodies (workspace_id, size_bytes);
