-- expand
CREATE TABLE oauth_clients (
    -- Made by us for a registered client; the address of its metadata for one that is known by that.
    id            TEXT    NOT NULL PRIMARY KEY,
    name          TEXT    NOT NULL,
    -- JSON array of the redirect URIs, as the client wrote them.
    redirect_uris TEXT    NOT NULL,
    -- SHA-256 of the client's secret; absent for a public client.
    secret_digest BLOB,
    -- Until when fetched metadata need not be fetched again; absent for a registered client.
    fresh_until   INTEGER,
    updated_at    INTEGER NOT NULL
) STRICT;

CREATE INDEX oauth_clients_by_update ON oauth_clients (updated_at);

-- What a person allowed a client. Its tokens go with it.
CREATE TABLE oauth_grants (
    workspace_id  TEXT    NOT NULL REFERENCES workspaces (id),
    id            TEXT    NOT NULL,
    user_id       TEXT    NOT NULL REFERENCES users (id),
    client_id     TEXT    NOT NULL,
    -- As both were shown to the person.
    client_name   TEXT    NOT NULL,
    redirect_host TEXT    NOT NULL,
    -- What was granted: "read,write,delete".
    permissions   TEXT    NOT NULL,
    -- What the tokens are for (RFC 8707).
    resource      TEXT    NOT NULL,
    created_at    INTEGER NOT NULL,
    last_used_at  INTEGER NOT NULL,
    -- Moves on with each use of the refresh token.
    expires_at    INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, id)
) STRICT;

CREATE INDEX oauth_grants_by_client ON oauth_grants (client_id);
CREATE INDEX oauth_grants_by_end ON oauth_grants (expires_at);

CREATE TABLE oauth_codes (
    -- SHA-256 of the authorization code.
    digest         BLOB    NOT NULL PRIMARY KEY,
    workspace_id   TEXT    NOT NULL REFERENCES workspaces (id),
    user_id        TEXT    NOT NULL REFERENCES users (id),
    client_id      TEXT    NOT NULL,
    client_name    TEXT    NOT NULL,
    redirect_uri   TEXT    NOT NULL,
    redirect_host  TEXT    NOT NULL,
    -- BASE64URL(SHA-256(code_verifier)), RFC 7636.
    code_challenge TEXT    NOT NULL,
    permissions    TEXT    NOT NULL,
    resource       TEXT    NOT NULL,
    expires_at     INTEGER NOT NULL,
    -- The grant that the code became, so that a replay can take it back.
    grant_id       TEXT
) STRICT;

CREATE INDEX oauth_codes_by_end ON oauth_codes (expires_at);

CREATE TABLE oauth_access_tokens (
    -- SHA-256 of the token.
    digest       BLOB    NOT NULL PRIMARY KEY,
    workspace_id TEXT    NOT NULL,
    grant_id     TEXT    NOT NULL,
    permissions  TEXT    NOT NULL,
    expires_at   INTEGER NOT NULL,
    FOREIGN KEY (workspace_id, grant_id) REFERENCES oauth_grants (workspace_id, id) ON DELETE CASCADE
) STRICT;

CREATE INDEX oauth_access_tokens_by_grant ON oauth_access_tokens (workspace_id, grant_id);
CREATE INDEX oauth_access_tokens_by_end ON oauth_access_tokens (expires_at);

-- Also those that were rotated, so that a replay is noticed.
CREATE TABLE oauth_refresh_tokens (
    -- SHA-256 of the token.
    digest       BLOB    NOT NULL PRIMARY KEY,
    workspace_id TEXT    NOT NULL,
    grant_id     TEXT    NOT NULL,
    rotated_at   INTEGER,
    -- With the token itself it gives the successor, which is stored as a digest only.
    salt         BLOB,
    FOREIGN KEY (workspace_id, grant_id) REFERENCES oauth_grants (workspace_id, id) ON DELETE CASCADE
) STRICT;

CREATE INDEX oauth_refresh_tokens_by_grant ON oauth_refresh_tokens (workspace_id, grant_id);
CREATE INDEX oauth_refresh_tokens_by_rotation ON oauth_refresh_tokens (rotated_at);
