-- expand
-- What people tell their sessions apart by: what it was opened with and roughly where, and when it was last used.
ALTER TABLE sessions ADD COLUMN agent TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN place TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN last_used_at BIGINT;
