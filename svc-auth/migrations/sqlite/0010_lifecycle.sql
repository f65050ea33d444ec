-- expand
-- From when on a deleted workspace is removed for good; until then its owner can take it back.
ALTER TABLE workspaces ADD COLUMN purge_at INTEGER;
-- Since when it is being removed: from then on nobody can take it back.
ALTER TABLE workspaces ADD COLUMN purge_began_at INTEGER;
-- Rises with each deletion, restoration and removal, so that services tell a late message from the newest.
ALTER TABLE workspaces ADD COLUMN state_revision INTEGER NOT NULL DEFAULT 0;

CREATE INDEX workspaces_by_deletion ON workspaces (purge_at) WHERE deleted_at IS NOT NULL;

-- What services are still to be told of workspaces: written with the change itself, removed when the service has taken
-- it in. One row for each service: the newest, whatever went before.
CREATE TABLE lifecycle_notices (
    workspace_id TEXT   NOT NULL REFERENCES workspaces (id),
    -- 'content', 'ingest', 'sync', 'retrieval'
    service      TEXT   NOT NULL,
    -- Removals go from place to place.
    place        INTEGER NOT NULL,
    -- 'suspend', 'restore', 'purge'
    action       TEXT   NOT NULL,
    revision     INTEGER NOT NULL,
    attempts     INTEGER NOT NULL,
    due_at       INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, service)
) STRICT, WITHOUT ROWID;

CREATE INDEX lifecycle_notices_by_due ON lifecycle_notices (due_at);
