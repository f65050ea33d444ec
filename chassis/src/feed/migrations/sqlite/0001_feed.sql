-- expand
CREATE TABLE feed_heads (
    workspace_id TEXT NOT NULL PRIMARY KEY,
    position BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
) WITHOUT ROWID;

CREATE INDEX feed_heads_by_updated_at ON feed_heads (updated_at);

CREATE TABLE feed_changes (
    workspace_id TEXT NOT NULL,
    position BIGINT NOT NULL,
    kind BIGINT NOT NULL,
    item_id TEXT NOT NULL,
    op BIGINT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, position)
) WITHOUT ROWID;
