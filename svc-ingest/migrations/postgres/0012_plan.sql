-- expand
-- The plan that the workspace's callers had last: runs have no caller, and are held to it.
ALTER TABLE workspace_usage ADD COLUMN plan TEXT;
