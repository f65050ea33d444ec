-- expand
CREATE TABLE databases (
    workspace_id TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    folder_id TEXT COLLATE "C",
    name TEXT COLLATE "C" NOT NULL,
    description TEXT COLLATE "C",
    icon TEXT COLLATE "C",
    properties TEXT COLLATE "C" NOT NULL,
    views TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    deleted_at BIGINT,
    deletion_id TEXT COLLATE "C",
    PRIMARY KEY (workspace_id, id)
);

CREATE INDEX databases_by_name ON databases (workspace_id, name, id) WHERE deleted_at IS NULL;
CREATE INDEX databases_by_folder ON databases (workspace_id, folder_id, name, id) WHERE deleted_at IS NULL;
CREATE INDEX databases_by_deletion ON databases (workspace_id, deletion_id) WHERE deletion_id IS NOT NULL;

-- Apart from the database, whose row every writer of a record shares until its end.
CREATE TABLE record_counts (
    workspace_id TEXT COLLATE "C" NOT NULL,
    database_id TEXT COLLATE "C" NOT NULL,
    live BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, database_id)
);

CREATE TABLE records (
    workspace_id TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    database_id TEXT COLLATE "C" NOT NULL,
    field_values TEXT COLLATE "C" NOT NULL,
    content_file_id TEXT COLLATE "C",
    title TEXT COLLATE "C" NOT NULL,
    searched TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    deleted_at BIGINT,
    deletion_id TEXT COLLATE "C",
    PRIMARY KEY (workspace_id, id),
    FOREIGN KEY (workspace_id, database_id) REFERENCES databases (workspace_id, id)
);

CREATE INDEX records_by_creation ON records (workspace_id, database_id, created_at, id) WHERE deleted_at IS NULL;
CREATE INDEX records_by_database ON records (workspace_id, database_id);
CREATE INDEX records_by_body ON records (workspace_id, content_file_id) WHERE content_file_id IS NOT NULL;
CREATE INDEX records_by_deletion ON records (workspace_id, deletion_id) WHERE deletion_id IS NOT NULL;

CREATE TABLE record_versions (
    workspace_id TEXT COLLATE "C" NOT NULL,
    record_id TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    field_values TEXT COLLATE "C" NOT NULL,
    content_file_id TEXT COLLATE "C",
    created_at BIGINT NOT NULL,
    author_kind TEXT COLLATE "C" NOT NULL,
    author_id TEXT COLLATE "C" NOT NULL,
    author_name TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (workspace_id, record_id, version),
    FOREIGN KEY (workspace_id, record_id) REFERENCES records (workspace_id, id)
);

-- The values of live records in the form in which engines compare them: one row for each element of a value.
CREATE TABLE record_cells (
    workspace_id TEXT COLLATE "C" NOT NULL,
    record_id TEXT COLLATE "C" NOT NULL,
    property_id TEXT COLLATE "C" NOT NULL,
    place BIGINT NOT NULL,
    database_id TEXT COLLATE "C" NOT NULL,
    number_key DOUBLE PRECISION,
    text_key TEXT COLLATE "C",
    rest TEXT COLLATE "C",
    target_id TEXT COLLATE "C",
    PRIMARY KEY (workspace_id, record_id, property_id, place)
);

CREATE INDEX record_cells_by_number ON record_cells (workspace_id, database_id, property_id, number_key, record_id, place)
    WHERE number_key IS NOT NULL;
CREATE INDEX record_cells_by_text ON record_cells (workspace_id, database_id, property_id, text_key, record_id, place)
    WHERE text_key IS NOT NULL;
CREATE INDEX record_cells_by_target ON record_cells (workspace_id, target_id) WHERE target_id IS NOT NULL;
