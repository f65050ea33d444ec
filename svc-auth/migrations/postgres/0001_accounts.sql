-- expand
CREATE TABLE users (
    id            TEXT   NOT NULL PRIMARY KEY,
    -- Folded to lower case by the service, alike on both engines.
    email         TEXT   NOT NULL UNIQUE,
    name          TEXT   NOT NULL,
    -- PHC string; absent for a person who signs in elsewhere only.
    password_hash TEXT,
    created_at    BIGINT NOT NULL
);

CREATE TABLE workspaces (
    id         TEXT   COLLATE "C" NOT NULL PRIMARY KEY,
    name       TEXT   COLLATE "C" NOT NULL,
    plan       TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    deleted_at BIGINT
);

CREATE TABLE members (
    workspace_id TEXT   COLLATE "C" NOT NULL REFERENCES workspaces (id),
    user_id      TEXT   NOT NULL REFERENCES users (id),
    role         TEXT   NOT NULL,
    created_at   BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, user_id)
);

CREATE INDEX members_by_user ON members (user_id);

CREATE TABLE tokens (
    workspace_id TEXT    COLLATE "C" NOT NULL REFERENCES workspaces (id),
    id           TEXT    COLLATE "C" NOT NULL,
    owner_id     TEXT    NOT NULL REFERENCES users (id),
    name         TEXT    NOT NULL,
    -- What was granted: "read,write,delete".
    permissions  TEXT    NOT NULL,
    -- JSON array of folder ids; absent for the whole workspace.
    folders      TEXT,
    -- SHA-256 of the token.
    digest       BYTEA   NOT NULL UNIQUE,
    last_four    TEXT    NOT NULL,
    active       BOOLEAN NOT NULL,
    created_at   BIGINT  NOT NULL,
    expires_at   BIGINT,
    last_used_at BIGINT,
    PRIMARY KEY (workspace_id, id)
);

CREATE TABLE sessions (
    id         TEXT   NOT NULL PRIMARY KEY,
    user_id    TEXT   NOT NULL REFERENCES users (id),
    -- SHA-256 of the secret in the cookie.
    digest     BYTEA  NOT NULL UNIQUE,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);

CREATE INDEX sessions_by_user ON sessions (user_id);
CREATE INDEX sessions_by_end ON sessions (expires_at);

CREATE TABLE signing_keys (
    -- The `kid` of what the key signs.
    id         TEXT   NOT NULL PRIMARY KEY,
    public_key BYTEA  NOT NULL,
    -- How the seed is protected at rest; 'none' while only access to the database protects it.
    sealing    TEXT   NOT NULL,
    seed       BYTEA  NOT NULL,
    -- 'active' signs; a key in any other state only verifies, until the last identity that it signed has ended.
    state      TEXT   NOT NULL,
    created_at BIGINT NOT NULL
);

-- Processes that start together agree on one key.
CREATE UNIQUE INDEX signing_keys_active ON signing_keys (state) WHERE state = 'active';
