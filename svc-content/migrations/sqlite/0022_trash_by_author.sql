-- expand
-- The trash is asked for by who deleted.
CREATE INDEX trash_by_author ON trash (workspace_id, author_id, deleted_at, deletion_id);
