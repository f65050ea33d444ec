-- expand
-- For how many days what is asked is kept: 7, 30 or 90. NULL: it is not.
ALTER TABLE workspaces ADD COLUMN question_log_days BIGINT;
