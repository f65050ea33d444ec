-- expand
CREATE TABLE memories (
    workspace_id TEXT NOT NULL,
    id TEXT NOT NULL,
    slug TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT,
    use_when TEXT,
    is_public BOOLEAN NOT NULL,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, id)
) WITHOUT ROWID;

CREATE UNIQUE INDEX memories_by_slug ON memories (workspace_id, slug);
CREATE INDEX memories_by_name ON memories (workspace_id, name, id);
-- An export without a token may name the memory alone.
CREATE INDEX memories_public ON memories (id) WHERE is_public;

-- Targets may be gone: a member outlives what it refers to, so that its absence can be told.
CREATE TABLE memory_members (
    workspace_id TEXT NOT NULL,
    memory_id TEXT NOT NULL,
    id TEXT NOT NULL,
    position BIGINT NOT NULL,
    kind BIGINT NOT NULL,
    target_id TEXT NOT NULL,
    query TEXT,
    added_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, memory_id, id),
    FOREIGN KEY (workspace_id, memory_id) REFERENCES memories (workspace_id, id)
) WITHOUT ROWID;

CREATE INDEX memory_members_by_position ON memory_members (workspace_id, memory_id, position);
