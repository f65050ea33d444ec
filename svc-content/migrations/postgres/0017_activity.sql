-- expand
-- Who did what to which item: a row for each item that a write changed, written by that write.
CREATE TABLE activity (
    workspace_id TEXT COLLATE "C" NOT NULL,
    happened_at BIGINT NOT NULL,
    -- Where the write ended in the feed, and the row's place among those of the write.
    position BIGINT NOT NULL,
    place BIGINT NOT NULL,
    -- 'user', 'token', 'grant' or 'service'.
    principal_kind TEXT NOT NULL,
    principal_id TEXT COLLATE "C" NOT NULL,
    principal_name TEXT NOT NULL,
    -- '' for what the service does by itself.
    channel TEXT NOT NULL,
    operation TEXT NOT NULL,
    -- As in the feed.
    kind BIGINT NOT NULL,
    item_id TEXT COLLATE "C" NOT NULL,
    folder_id TEXT COLLATE "C",
    database_id TEXT COLLATE "C",
    name TEXT NOT NULL,
    path TEXT NOT NULL,
    version_before BIGINT,
    version_after BIGINT,
    -- How many items it took, or brought back.
    items BIGINT NOT NULL,
    -- What was changed, and what that was before, as JSON.
    former TEXT NOT NULL,
    PRIMARY KEY (workspace_id, happened_at, position, place)
);

CREATE INDEX activity_by_principal ON activity (workspace_id, principal_id, happened_at, position, place);
