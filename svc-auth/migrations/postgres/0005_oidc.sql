-- expand
CREATE TABLE oidc_links (
    issuer     TEXT COLLATE "C" NOT NULL,
    -- Who somebody is to that issuer, for ever; an email may pass on to somebody else.
    subject    TEXT COLLATE "C" NOT NULL,
    user_id    TEXT NOT NULL REFERENCES users (id),
    created_at BIGINT NOT NULL,
    PRIMARY KEY (issuer, subject),
    UNIQUE (issuer, user_id)
);

-- Sign-ins that opened a session, so that none opens a second one.
CREATE TABLE oidc_used (
    -- SHA-256 of the browser's ticket.
    digest     BYTEA NOT NULL PRIMARY KEY,
    expires_at BIGINT NOT NULL
);

CREATE INDEX oidc_used_by_end ON oidc_used (expires_at);
