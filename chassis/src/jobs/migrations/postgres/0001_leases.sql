-- expand
CREATE TABLE leases (
    name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    holder TEXT COLLATE "C" NOT NULL,
    expires_at BIGINT NOT NULL
);
