-- expand
-- The bytes of assets, each once in a workspace. A row is written when its object is whole, and an object that has no
-- row is nothing: an upload that was cut, or what a deletion could not remove.
CREATE TABLE asset_objects (
    workspace_id TEXT NOT NULL,
    hash TEXT NOT NULL,
    -- Names the object in the store; never used a second time.
    object_id TEXT NOT NULL,
    size_bytes BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, hash)
) WITHOUT ROWID;

CREATE UNIQUE INDEX asset_objects_by_object ON asset_objects (workspace_id, object_id);

CREATE TABLE assets (
    workspace_id TEXT NOT NULL,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    media_type TEXT NOT NULL,
    hash TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    author_kind TEXT NOT NULL,
    author_id TEXT NOT NULL,
    author_name TEXT NOT NULL,
    PRIMARY KEY (workspace_id, id),
    FOREIGN KEY (workspace_id, hash) REFERENCES asset_objects (workspace_id, hash)
) WITHOUT ROWID;

CREATE INDEX assets_by_hash ON assets (workspace_id, hash);
