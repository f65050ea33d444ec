-- expand
-- Whether the person has proved that the email is theirs: by an OpenID Connect provider that says so, or by a link that we
-- mailed there.
ALTER TABLE users ADD COLUMN email_verified BOOLEAN NOT NULL DEFAULT FALSE;
-- Only who came with a verified email was linked.
UPDATE users SET email_verified = TRUE WHERE id IN (SELECT user_id FROM oidc_links);

-- SHA-256 of the secret in the link that was mailed, which proves the email; absent when none was.
ALTER TABLE invitations ADD COLUMN mail_digest BYTEA;
CREATE UNIQUE INDEX invitations_by_mail_digest ON invitations (mail_digest);
CREATE INDEX invitations_by_email ON invitations (email);

-- What was mailed of late, so that invitations flood nobody.
CREATE TABLE invitation_mails (
    id         TEXT NOT NULL PRIMARY KEY,
    inviter_id TEXT NOT NULL REFERENCES users (id),
    email      TEXT NOT NULL,
    sent_at    BIGINT NOT NULL
);

CREATE INDEX invitation_mails_by_inviter ON invitation_mails (inviter_id, sent_at);
CREATE INDEX invitation_mails_by_email ON invitation_mails (email, sent_at);
CREATE INDEX invitation_mails_by_time ON invitation_mails (sent_at);

-- What a person has made is counted, and ended, by person.
CREATE INDEX tokens_by_owner ON tokens (owner_id, workspace_id);
CREATE INDEX oauth_grants_by_user ON oauth_grants (user_id);
CREATE INDEX oauth_codes_by_user ON oauth_codes (user_id);
CREATE INDEX invitations_by_inviter ON invitations (inviter_id);
