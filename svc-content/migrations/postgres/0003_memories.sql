-- expand
CREATE TABLE memories (
    workspace_id TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    slug TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    description TEXT COLLATE "C",
    use_when TEXT COLLATE "C",
    is_public BOOLEAN NOT NULL,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, id)
);

CREATE UNIQUE INDEX memories_by_slug ON memories (workspace_id, slug);
CREATE INDEX memories_by_name ON memories (workspace_id, name, id);
-- An export without a token may name the memory alone.
CREATE INDEX memories_public ON memories (id) WHERE is_public;

-- Targets may be gone: a member outlives what it refers to, so that its absence can be told.
CREATE TABLE memory_members (
    workspace_id TEXT COLLATE "C" NOT NULL,
    memory_id TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    position BIGINT NOT NULL,
    kind BIGINT NOT NULL,
    target_id TEXT COLLATE "C" NOT NULL,
    query TEXT COLLATE "C",
    added_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, memory_id, id),
    FOREIGN KEY (workspace_id, memory_id) REFERENCES memories (workspace_id, id)
);

CREATE INDEX memory_members_by_position ON memory_members (workspace_id, memory_id, position);
