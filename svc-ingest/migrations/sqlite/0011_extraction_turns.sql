-- expand
-- Workspaces take turns: the oldest work of each.
CREATE INDEX extractions_by_workspace ON extractions (workspace_id, due_at);
