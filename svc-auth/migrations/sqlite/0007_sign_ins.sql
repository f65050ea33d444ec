-- expand
-- Failed sign-ins, and those under way, of an address or an account in a minute, an hour or a day.
CREATE TABLE sign_in_windows (
    -- SHA-256 of what is counted: neither emails nor addresses stand here.
    subject  BLOB    NOT NULL,
    seconds  INTEGER NOT NULL,
    -- The end of the window that the attempts are of; those of an earlier one are over.
    ends_at  INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    PRIMARY KEY (subject, seconds)
) STRICT, WITHOUT ROWID;

CREATE INDEX sign_in_windows_by_end ON sign_in_windows (ends_at);

-- From where accounts have signed in: their windows do not hold there.
CREATE TABLE sign_in_places (
    -- SHA-256 of the email and the address.
    place   BLOB    NOT NULL PRIMARY KEY,
    last_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX sign_in_places_by_last ON sign_in_places (last_at);
