-- expand
-- Which roles may make memories public: 'admins', 'editors' or 'writers'.
ALTER TABLE workspaces ADD COLUMN publishers TEXT NOT NULL DEFAULT 'admins';
