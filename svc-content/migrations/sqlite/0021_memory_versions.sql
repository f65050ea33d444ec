-- expand
-- What a memory was at each of its versions, the present one included; the newest hundred are kept.
CREATE TABLE memory_versions (
    workspace_id TEXT NOT NULL,
    memory_id TEXT NOT NULL,
    version BIGINT NOT NULL,
    name TEXT NOT NULL,
    -- How many members it had.
    members BIGINT NOT NULL,
    -- JSON: its fields, and the list of its members in their order.
    state TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    -- '' for what is older than this table.
    author_kind TEXT NOT NULL,
    author_id TEXT NOT NULL,
    author_name TEXT NOT NULL,
    PRIMARY KEY (workspace_id, memory_id, version),
    FOREIGN KEY (workspace_id, memory_id) REFERENCES memories (workspace_id, id)
) WITHOUT ROWID;

INSERT INTO memory_versions (workspace_id, memory_id, version, name, members, state, created_at, author_kind, author_id,
    author_name)
SELECT m.workspace_id, m.id, m.version, m.name,
    (SELECT COUNT(*) FROM memory_members c WHERE c.workspace_id = m.workspace_id AND c.memory_id = m.id),
    json_object(
        'name', m.name, 'slug', m.slug, 'description', m.description, 'useWhen', m.use_when,
        'isPublic', json(CASE WHEN m.is_public THEN 'true' ELSE 'false' END),
        'isListed', json(CASE WHEN m.is_listed THEN 'true' ELSE 'false' END),
        'members', json((SELECT json_group_array(json(p.entry)) FROM (
            SELECT json_object(
                'member', c.id,
                'kind', CASE c.kind WHEN 1 THEN 'file' WHEN 2 THEN 'folder' WHEN 3 THEN 'source_document' ELSE 'database' END,
                'id', c.target_id, 'query', json(c.query)) AS entry
            FROM memory_members c WHERE c.workspace_id = m.workspace_id AND c.memory_id = m.id ORDER BY c.position) p))),
    m.updated_at, '', '', ''
FROM memories m;
