-- expand
-- Heads are updated with every write: room on each page keeps those updates in place.
CREATE TABLE feed_heads (
    workspace_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    position BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
) WITH (fillfactor = 50);

CREATE INDEX feed_heads_by_updated_at ON feed_heads (updated_at);

CREATE TABLE feed_changes (
    workspace_id TEXT COLLATE "C" NOT NULL,
    position BIGINT NOT NULL,
    kind BIGINT NOT NULL,
    item_id TEXT COLLATE "C" NOT NULL,
    op BIGINT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, position)
);
