-- expand
-- What whoever started what is under way was called then; empty for runs from before this was recorded.
ALTER TABLE sync_runs ADD COLUMN asker_name TEXT NOT NULL DEFAULT '';
