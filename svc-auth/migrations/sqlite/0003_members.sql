-- expand
CREATE TABLE invitations (
    workspace_id TEXT    NOT NULL REFERENCES workspaces (id),
    id           TEXT    NOT NULL,
    -- Folded to lower case by the service: SQLite folds ASCII only.
    email        TEXT    NOT NULL,
    role         TEXT    NOT NULL,
    inviter_id   TEXT    NOT NULL REFERENCES users (id),
    -- SHA-256 of the secret in the link.
    digest       BLOB    NOT NULL UNIQUE,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, id),
    UNIQUE (workspace_id, email)
) STRICT, WITHOUT ROWID;

CREATE INDEX invitations_by_end ON invitations (expires_at);
