-- expand
-- Properties and options that are no more: the versions of records still hold their values.
CREATE TABLE former_properties (
    workspace_id TEXT COLLATE "C" NOT NULL,
    database_id TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    deleted_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, database_id, id)
);

CREATE TABLE former_options (
    workspace_id TEXT COLLATE "C" NOT NULL,
    database_id TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    property_id TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    deleted_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, database_id, id)
);

-- The records of a database are walked in the order of their ids, a batch at a time. SQLite's index ends with the id.
DROP INDEX records_by_database;
CREATE INDEX records_by_database ON records (workspace_id, database_id, id);
