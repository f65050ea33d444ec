-- expand
-- What was reported to the people who maintain a workspace. What was mailed leaves a row without its text for a while,
-- so that reports can be counted.
CREATE TABLE feedback (
    workspace_id TEXT    NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    -- UUIDv7: they sort by time.
    id           TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    caller_kind  TEXT    NOT NULL,
    caller_id    TEXT    NOT NULL,
    caller_name  TEXT    NOT NULL,
    category     TEXT    NOT NULL,
    channel      TEXT    NOT NULL,
    -- Absent of what was mailed.
    message      TEXT,
    -- A JSON object.
    context      TEXT,
    PRIMARY KEY (workspace_id, id)
) STRICT;

CREATE INDEX feedback_by_time ON feedback (workspace_id, created_at);
CREATE INDEX feedback_mailed ON feedback (created_at) WHERE message IS NULL;

-- When a person last allowed the client something.
ALTER TABLE oauth_clients ADD COLUMN used_at INTEGER;
UPDATE oauth_clients SET used_at = updated_at
    WHERE EXISTS (SELECT 1 FROM oauth_grants g WHERE g.client_id = oauth_clients.id);
-- Registered, and nobody allowed them anything yet.
CREATE INDEX oauth_clients_unused ON oauth_clients (updated_at) WHERE used_at IS NULL AND fresh_until IS NULL;
