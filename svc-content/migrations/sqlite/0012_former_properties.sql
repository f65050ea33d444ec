-- expand
-- Properties and options that are no more: the versions of records still hold their values.
CREATE TABLE former_properties (
    workspace_id TEXT NOT NULL,
    database_id TEXT NOT NULL,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    deleted_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, database_id, id)
) WITHOUT ROWID;

CREATE TABLE former_options (
    workspace_id TEXT NOT NULL,
    database_id TEXT NOT NULL,
    id TEXT NOT NULL,
    property_id TEXT NOT NULL,
    name TEXT NOT NULL,
    deleted_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, database_id, id)
) WITHOUT ROWID;
