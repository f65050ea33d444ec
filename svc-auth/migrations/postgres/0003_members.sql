-- expand
CREATE TABLE invitations (
    workspace_id TEXT   COLLATE "C" NOT NULL REFERENCES workspaces (id),
    id           TEXT   COLLATE "C" NOT NULL,
    -- Folded to lower case by the service, alike on both engines.
    email        TEXT   NOT NULL,
    role         TEXT   NOT NULL,
    inviter_id   TEXT   NOT NULL REFERENCES users (id),
    -- SHA-256 of the secret in the link.
    digest       BYTEA  NOT NULL UNIQUE,
    created_at   BIGINT NOT NULL,
    expires_at   BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, id),
    UNIQUE (workspace_id, email)
);

CREATE INDEX invitations_by_end ON invitations (expires_at);
