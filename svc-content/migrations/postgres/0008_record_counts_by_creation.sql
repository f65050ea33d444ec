-- expand
-- With deleted_at, counting and skipping live records reads the index alone.
DROP INDEX records_by_creation;
CREATE INDEX records_by_creation ON records (workspace_id, database_id, created_at, id, deleted_at)
    WHERE deleted_at IS NULL;
