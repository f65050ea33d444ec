-- expand
CREATE TABLE folders (
    workspace_id TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    parent_id TEXT COLLATE "C",
    name TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    deleted_at BIGINT,
    deletion_id TEXT COLLATE "C",
    PRIMARY KEY (workspace_id, id),
    FOREIGN KEY (workspace_id, parent_id) REFERENCES folders (workspace_id, id)
);

CREATE INDEX folders_by_name ON folders (workspace_id, name, id) WHERE deleted_at IS NULL;
CREATE INDEX folders_by_parent ON folders (workspace_id, parent_id, name, id) WHERE deleted_at IS NULL;
CREATE INDEX folders_by_deletion ON folders (workspace_id, deletion_id) WHERE deletion_id IS NOT NULL;

CREATE TABLE bodies (
    workspace_id TEXT COLLATE "C" NOT NULL,
    hash TEXT COLLATE "C" NOT NULL,
    encoding BIGINT NOT NULL,
    size_bytes BIGINT NOT NULL,
    data BYTEA NOT NULL,
    PRIMARY KEY (workspace_id, hash)
);

-- Already compressed.
ALTER TABLE bodies ALTER COLUMN data SET STORAGE EXTERNAL;

CREATE TABLE files (
    workspace_id TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    folder_id TEXT COLLATE "C",
    name TEXT COLLATE "C" NOT NULL,
    folded_name TEXT COLLATE "C" NOT NULL,
    file_type BIGINT NOT NULL,
    tags TEXT COLLATE "C" NOT NULL,
    size_bytes BIGINT NOT NULL,
    content_hash TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    deleted_at BIGINT,
    deletion_id TEXT COLLATE "C",
    PRIMARY KEY (workspace_id, id),
    FOREIGN KEY (workspace_id, folder_id) REFERENCES folders (workspace_id, id),
    FOREIGN KEY (workspace_id, content_hash) REFERENCES bodies (workspace_id, hash)
);

CREATE INDEX files_by_name ON files (workspace_id, name, id) WHERE deleted_at IS NULL;
CREATE INDEX files_by_folder ON files (workspace_id, folder_id, name, id) WHERE deleted_at IS NULL;
CREATE INDEX files_by_deletion ON files (workspace_id, deletion_id) WHERE deletion_id IS NOT NULL;
