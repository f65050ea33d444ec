CREATE TABLE migrations (name TEXT NOT NULL PRIMARY KEY, hash TEXT NOT NULL, step TEXT, version TEXT);
CREATE TABLE users (
    id            TEXT    NOT NULL PRIMARY KEY,
    -- Folded to lower case by the service: SQLite folds ASCII only.
    email         TEXT    NOT NULL UNIQUE,
    name          TEXT    NOT NULL,
    -- PHC string; absent for a person who signs in elsewhere only.
    password_hash TEXT,
    created_at    INTEGER NOT NULL
, email_verified INTEGER NOT NULL DEFAULT 0 CHECK (email_verified IN (0, 1))) STRICT;
CREATE TABLE workspaces (
    id         TEXT    NOT NULL PRIMARY KEY,
    name       TEXT    NOT NULL,
    plan       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    deleted_at INTEGER
, publishers TEXT NOT NULL DEFAULT 'admins', purge_at INTEGER, purge_began_at INTEGER, state_revision INTEGER NOT NULL DEFAULT 0, question_log_days INTEGER) STRICT;
CREATE TABLE members (
    workspace_id TEXT    NOT NULL REFERENCES workspaces (id),
    user_id      TEXT    NOT NULL REFERENCES users (id),
    role         TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, user_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE tokens (
    workspace_id TEXT    NOT NULL REFERENCES workspaces (id),
    id           TEXT    NOT NULL,
    owner_id     TEXT    NOT NULL REFERENCES users (id),
    name         TEXT    NOT NULL,
    -- What was granted: "read,write,delete".
    permissions  TEXT    NOT NULL,
    -- JSON array of folder ids; absent for the whole workspace.
    folders      TEXT,
    -- SHA-256 of the token.
    digest       BLOB    NOT NULL UNIQUE,
    last_four    TEXT    NOT NULL,
    active       INTEGER NOT NULL CHECK (active IN (0, 1)),
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER,
    last_used_at INTEGER, last_client TEXT NOT NULL DEFAULT '', last_channel TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (workspace_id, id)
) STRICT;
CREATE TABLE sessions (
    id         TEXT    NOT NULL PRIMARY KEY,
    user_id    TEXT    NOT NULL REFERENCES users (id),
    -- SHA-256 of the secret in the cookie.
    digest     BLOB    NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
, agent TEXT NOT NULL DEFAULT '', place TEXT NOT NULL DEFAULT '', last_used_at INTEGER) STRICT;
CREATE TABLE signing_keys (
    -- The `kid` of what the key signs.
    id         TEXT    NOT NULL PRIMARY KEY,
    public_key BLOB    NOT NULL,
    -- How the seed is protected at rest; 'none' while only access to the database protects it.
    sealing    TEXT    NOT NULL,
    seed       BLOB    NOT NULL,
    -- 'active' signs; a key in any other state only verifies, until the last identity that it signed has ended.
    state      TEXT    NOT NULL,
    created_at INTEGER NOT NULL
, state_since INTEGER NOT NULL DEFAULT 0, rotate_after INTEGER) STRICT;
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
, used_at INTEGER) STRICT;
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
CREATE TABLE oauth_access_tokens (
    -- SHA-256 of the token.
    digest       BLOB    NOT NULL PRIMARY KEY,
    workspace_id TEXT    NOT NULL,
    grant_id     TEXT    NOT NULL,
    permissions  TEXT    NOT NULL,
    expires_at   INTEGER NOT NULL,
    FOREIGN KEY (workspace_id, grant_id) REFERENCES oauth_grants (workspace_id, id) ON DELETE CASCADE
) STRICT;
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
    expires_at   INTEGER NOT NULL, mail_digest BLOB,
    PRIMARY KEY (workspace_id, id),
    UNIQUE (workspace_id, email)
) STRICT, WITHOUT ROWID;
CREATE TABLE oidc_links (
    issuer     TEXT NOT NULL,
    -- Who somebody is to that issuer, for ever; an email may pass on to somebody else.
    subject    TEXT NOT NULL,
    user_id    TEXT NOT NULL REFERENCES users (id),
    created_at INTEGER NOT NULL,
    PRIMARY KEY (issuer, subject),
    UNIQUE (issuer, user_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE oidc_used (
    -- SHA-256 of the browser's ticket.
    digest     BLOB NOT NULL PRIMARY KEY,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE invitation_mails (
    id         TEXT NOT NULL PRIMARY KEY,
    inviter_id TEXT NOT NULL REFERENCES users (id),
    email      TEXT NOT NULL,
    sent_at    INTEGER NOT NULL
) STRICT;
CREATE TABLE sign_in_windows (
    -- SHA-256 of what is counted: neither emails nor addresses stand here.
    subject  BLOB    NOT NULL,
    seconds  INTEGER NOT NULL,
    -- The end of the window that the attempts are of; those of an earlier one are over.
    ends_at  INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    PRIMARY KEY (subject, seconds)
) STRICT, WITHOUT ROWID;
CREATE TABLE sign_in_places (
    -- SHA-256 of the email and the address.
    place   BLOB    NOT NULL PRIMARY KEY,
    last_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
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
CREATE TABLE lifecycle_notices (
    workspace_id TEXT   NOT NULL REFERENCES workspaces (id),
    -- 'content', 'ingest', 'sync', 'retrieval'
    service      TEXT   NOT NULL,
    -- Removals go from place to place.
    place        INTEGER NOT NULL,
    -- 'suspend', 'restore', 'purge'
    action       TEXT   NOT NULL,
    revision     INTEGER NOT NULL,
    attempts     INTEGER NOT NULL,
    due_at       INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, service)
) STRICT, WITHOUT ROWID;
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0001_accounts', 'ebabc17c0bf8cfbdeaaaa941322692b5486bb8f3b0fac69683782fc001be1e01', 'expand', '0.1.0');
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0002_oauth', '5a2cf10c9526e2c27ba145852196e784a0da16f285f297e2a1601013e48272c3', 'expand', '0.1.0');
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0003_members', '6bc1885f704eb6ae54c5e386308be822333ee071ed2acfabb7cb9ca8756eb77d', 'expand', '0.1.0');
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0004_key_rotation', '62733172991d680fa34f51f84b16aed6d662eb974cb6c3fc768f91a3e15abb02', 'expand', '0.1.0');
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0005_oidc', 'e65cc52e50dda6dda6cae04bfcff58e7fee22f8a6b83b527589b89f96fbe754c', 'expand', '0.1.0');
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0006_verified_emails', 'bfa4e1fab0c9b0af9f977d9a2a66dbc41991738cf059f7abe1be0c92188a7303', 'expand', '0.1.0');
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0007_sign_ins', '8cf92740a2a4394cfc2451073c1b5857af10f557aac8a7f8b02ca0e30d6bbdd6', 'expand', '0.1.0');
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0008_feedback', '76a5cf98b7458096f310f0ae2aeb79609000fa7ee56e640e8ab436633ee31d10', 'expand', '0.1.0');
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0009_publishers', '10a6d12f83ef1c418bb43c146bef97512f9bfdc49971a0c6fe6cd2a17a4c9078', 'expand', '0.1.0');
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0010_lifecycle', '5ff8a055c033724b8f7e2255c15dabf12c03c3f5ae65c10eb837f9d2e84f8584', 'expand', '0.1.0');
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0011_sessions', '49f8df42e8d2a7e2b8cb87b0300fcd6d1ae614663b0cbb5d01f5c55dbb8dc27f', 'expand', '0.1.0');
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0012_question_log', 'ec914d4fb036d23f4cf99507bed9b08e4e53cb1a6312ca0c83b78742eedb0b4c', 'expand', '0.1.0');
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0013_last_client', '304ad2a02f4cd7bebddbffcb45e599a2d063ef123c5a16d5e8e2c05ca1c2a588', 'expand', '0.1.0');
INSERT INTO "users" ("id", "email", "name", "password_hash", "created_at", "email_verified") VALUES ('01a22379-1167-722c-8296-5d0bbe716b43', 'owner@localhost', 'Owner', '$argon2id$v=19$m=19456,t=2,p=1$H3n+Jq3UBQFLMD8gCNstlA$jGrlM0xW/IkW5xFo4C+sa7uOIWozOr0BiPaFe8/sVAY', 1795891466599248, 0);
INSERT INTO "workspaces" ("id", "name", "plan", "created_at", "updated_at", "deleted_at", "publishers", "purge_at", "purge_began_at", "state_revision", "question_log_days") VALUES ('01a22379-1167-7358-bf7b-21787192759a', 'My workspace', 'selfhosted', 1795891466599415, 1795891466599415, NULL, 'admins', NULL, NULL, 0, NULL);
INSERT INTO "members" ("workspace_id", "user_id", "role", "created_at") VALUES ('01a22379-1167-7358-bf7b-21787192759a', '01a22379-1167-722c-8296-5d0bbe716b43', 'owner', 1795891466599415);
INSERT INTO "tokens" ("workspace_id", "id", "owner_id", "name", "permissions", "folders", "digest", "last_four", "active", "created_at", "expires_at", "last_used_at", "last_client", "last_channel") VALUES ('01a22379-1167-7358-bf7b-21787192759a', '01a22379-1167-7451-802a-e7f7bc74155e', '01a22379-1167-722c-8296-5d0bbe716b43', 'First token', 'read,write,delete', NULL, X'EA3BF5F7DC583A75DEFF3E7A2E94B94185D624B460D77D3223AC0C0FA27169B0', 'BkgI', 1, 1795891466599740, NULL, 1795891565001663, 'Python-urllib/3.11', 'rest');
INSERT INTO "signing_keys" ("id", "public_key", "sealing", "seed", "state", "created_at", "state_since", "rotate_after") VALUES ('e4fd2890286b6b5a', X'B9FF4618F110029B1060086DB413BF6BFD80A875AA88A66140F8B0AC5C4E48FE', 'aes-256-gcm', X'0183CA0625C5188C47D6E58C0D5FF956B2FE126BF620442D70AE836063342625E7A1BA7FB60994B23F32DACE6BB94A809CF49C75DEE238C06A0B93D4DBF54B232D09846CAE', 'active', 1795891466241639, 1795891466241639, NULL);
INSERT INTO "sign_in_windows" ("subject", "seconds", "ends_at", "attempts") VALUES (X'3B833A45717BDA32128ABC80088B8156152512799EE8ACD86EB4CC66175372E6', 60, 1795891620000000, 0);
INSERT INTO "sign_in_windows" ("subject", "seconds", "ends_at", "attempts") VALUES (X'3B833A45717BDA32128ABC80088B8156152512799EE8ACD86EB4CC66175372E6', 3600, 1795892400000000, 0);
INSERT INTO "sign_in_windows" ("subject", "seconds", "ends_at", "attempts") VALUES (X'3B833A45717BDA32128ABC80088B8156152512799EE8ACD86EB4CC66175372E6', 86400, 1795910400000000, 0);
INSERT INTO "sign_in_windows" ("subject", "seconds", "ends_at", "attempts") VALUES (X'90FBED23B0A9B27F33D2AAE66126C2B3F659CE68EA3A8C9BC0A28F14D57C77FD', 60, 1795891620000000, 0);
INSERT INTO "sign_in_windows" ("subject", "seconds", "ends_at", "attempts") VALUES (X'90FBED23B0A9B27F33D2AAE66126C2B3F659CE68EA3A8C9BC0A28F14D57C77FD', 3600, 1795892400000000, 0);
INSERT INTO "sign_in_windows" ("subject", "seconds", "ends_at", "attempts") VALUES (X'90FBED23B0A9B27F33D2AAE66126C2B3F659CE68EA3A8C9BC0A28F14D57C77FD', 86400, 1795910400000000, 0);
INSERT INTO "sign_in_places" ("place", "last_at") VALUES (X'7DB7CEAF0A3812ADBA882A3DFBC9A1ED0ED7A7FE0A8F891ACDB75BB4333F4C50', 1795891565222853);
CREATE INDEX members_by_user ON members (user_id);
CREATE INDEX sessions_by_user ON sessions (user_id);
CREATE INDEX sessions_by_end ON sessions (expires_at);
CREATE UNIQUE INDEX signing_keys_active ON signing_keys (state) WHERE state = 'active';
CREATE INDEX oauth_clients_by_update ON oauth_clients (updated_at);
CREATE INDEX oauth_grants_by_client ON oauth_grants (client_id);
CREATE INDEX oauth_grants_by_end ON oauth_grants (expires_at);
CREATE INDEX oauth_codes_by_end ON oauth_codes (expires_at);
CREATE INDEX oauth_access_tokens_by_grant ON oauth_access_tokens (workspace_id, grant_id);
CREATE INDEX oauth_access_tokens_by_end ON oauth_access_tokens (expires_at);
CREATE INDEX oauth_refresh_tokens_by_grant ON oauth_refresh_tokens (workspace_id, grant_id);
CREATE INDEX oauth_refresh_tokens_by_rotation ON oauth_refresh_tokens (rotated_at);
CREATE INDEX invitations_by_end ON invitations (expires_at);
CREATE UNIQUE INDEX signing_keys_next ON signing_keys (state) WHERE state = 'next';
CREATE INDEX oidc_used_by_end ON oidc_used (expires_at);
CREATE UNIQUE INDEX invitations_by_mail_digest ON invitations (mail_digest);
CREATE INDEX invitations_by_email ON invitations (email);
CREATE INDEX invitation_mails_by_inviter ON invitation_mails (inviter_id, sent_at);
CREATE INDEX invitation_mails_by_email ON invitation_mails (email, sent_at);
CREATE INDEX invitation_mails_by_time ON invitation_mails (sent_at);
CREATE INDEX tokens_by_owner ON tokens (owner_id, workspace_id);
CREATE INDEX oauth_grants_by_user ON oauth_grants (user_id);
CREATE INDEX oauth_codes_by_user ON oauth_codes (user_id);
CREATE INDEX invitations_by_inviter ON invitations (inviter_id);
CREATE INDEX sign_in_windows_by_end ON sign_in_windows (ends_at);
CREATE INDEX sign_in_places_by_last ON sign_in_places (last_at);
CREATE INDEX feedback_by_time ON feedback (workspace_id, created_at);
CREATE INDEX feedback_mailed ON feedback (created_at) WHERE message IS NULL;
CREATE INDEX oauth_clients_unused ON oauth_clients (updated_at) WHERE used_at IS NULL AND fresh_until IS NULL;
CREATE INDEX workspaces_by_deletion ON workspaces (purge_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX lifecycle_notices_by_due ON lifecycle_notices (due_at);
