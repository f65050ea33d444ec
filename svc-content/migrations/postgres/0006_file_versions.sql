-- expand
-- A row for each content that a file had, the present one included.
CREATE TABLE file_versions (
    workspace_id TEXT COLLATE "C" NOT NULL,
    file_id TEXT COLLATE "C" NOT NULL,
    -- The file's version when it got this content.
    version BIGINT NOT NULL,
    content_hash TEXT COLLATE "C" NOT NULL,
    size_bytes BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    -- 'token', 'user' or 'sync'; '' for what is older than this table.
    author_kind TEXT COLLATE "C" NOT NULL,
    author_id TEXT COLLATE "C" NOT NULL,
    author_name TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (workspace_id, file_id, version),
    FOREIGN KEY (workspace_id, file_id) REFERENCES files (workspace_id, id),
    FOREIGN KEY (workspace_id, content_hash) REFERENCES bodies (workspace_id, hash)
);

CREATE INDEX file_versions_by_content ON file_versions (workspace_id, content_hash);

INSERT INTO file_versions (workspace_id, file_id, version, content_hash, size_bytes, created_at, author_kind,
    author_id, author_name)
SELECT workspace_id, id, version, content_hash, size_bytes, updated_at, '', '', '' FROM files;
