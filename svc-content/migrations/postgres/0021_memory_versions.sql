-- expand
-- What a memory was at each of its versions, the present one included; the newest hundred are kept.
CREATE TABLE memory_versions (
    workspace_id TEXT COLLATE "C" NOT NULL,
    memory_id TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    -- How many members it had.
    members BIGINT NOT NULL,
    -- JSON: its fields, and the list of its members in their order.
    state TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    -- '' for what is older than this table.
    author_kind TEXT COLLATE "C" NOT NULL,
    author_id TEXT COLLATE "C" NOT NULL,
    author_name TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (workspace_id, memory_id, version),
    FOREIGN KEY (workspace_id, memory_id) REFERENCES memories (workspace_id, id)
);

INSERT INTO memory_versions (workspace_id, memory_id, version, name, members, state, created_at, author_kind, author_id,
    author_name)
SELECT m.workspace_id, m.id, m.version, m.name,
    (SELECT COUNT(*) FROM memory_members c WHERE c.workspace_id = m.workspace_id AND c.memory_id = m.id),
    CAST(jsonb_build_object(
        'name', m.name, 'slug', m.slug, 'description', m.description, 'useWhen', m.use_when,
        'isPublic', m.is_public, 'isListed', m.is_listed,
        'members', COALESCE((SELECT jsonb_agg(jsonb_build_object(
            'member', c.id,
            'kind', CASE c.kind WHEN 1 THEN 'file' WHEN 2 THEN 'folder' WHEN 3 THEN 'source_document' ELSE 'database' END,
            'id', c.target_id, 'query', CAST(c.query AS JSONB)) ORDER BY c.position)
            FROM memory_members c WHERE c.workspace_id = m.workspace_id AND c.memory_id = m.id), CAST('[]' AS JSONB))) AS TEXT),
    m.updated_at, '', '', ''
FROM memories m;
