-- expand
CREATE TABLE folders (
    workspace_id TEXT NOT NULL,
    id TEXT NOT NULL,
    parent_id TEXT,
    name TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    deleted_at BIGINT,
    deletion_id TEXT,
    PRIMARY KEY (workspace_id, id),
    FOREIGN KEY (workspace_id, parent_id) REFERENCES folders (workspace_id, id)
) WITHOUT ROWID;

CREATE INDEX folders_by_name ON folders (workspace_id, name, id) WHERE deleted_at IS NULL;
CREATE INDEX folders_by_parent ON folders (workspace_id, parent_id, name, id) WHERE deleted_at IS NULL;
CREATE INDEX folders_by_deletion ON folders (workspace_id, deletion_id) WHERE deletion_id IS NOT NULL;

CREATE TABLE bodies (
    workspace_id TEXT NOT NULL,
    hash TEXT NOT NULL,
    encoding BIGINT NOT NULL,
    size_bytes BIGINT NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (workspace_id, hash)
);

CREATE TABLE files (
    workspace_id TEXT NOT NULL,
    id TEXT NOT NULL,
    folder_id TEXT,
    name TEXT NOT NULL,
    folded_name TEXT NOT NULL,
    file_type BIGINT NOT NULL,
    tags TEXT NOT NULL,
    size_bytes BIGINT NOT NULL,
    content_hash TEXT NOT NULL,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    deleted_at BIGINT,
    deletion_id TEXT,
    PRIMARY KEY (workspace_id, id),
    FOREIGN KEY (workspace_id, folder_id) REFERENCES folders (workspace_id, id),
    FOREIGN KEY (workspace_id, content_hash) REFERENCES bodies (workspace_id, hash)
) WITHOUT ROWID;

CREATE INDEX files_by_name ON files (workspace_id, name, id) WHERE deleted_at IS NULL;
CREATE INDEX files_by_folder ON files (workspace_id, folder_id, name, id) WHERE deleted_at IS NULL;
CREATE INDEX files_by_deletion ON files (workspace_id, deletion_id) WHERE deletion_id IS NOT NULL;
