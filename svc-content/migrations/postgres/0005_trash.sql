-- expand
-- One row for each deletion, whatever it took: the trash is listed, restored and emptied by these.
CREATE TABLE trash (
    workspace_id TEXT COLLATE "C" NOT NULL,
    deletion_id TEXT COLLATE "C" NOT NULL,
    -- As in the feed.
    kind BIGINT NOT NULL,
    item_id TEXT COLLATE "C" NOT NULL,
    -- What held it; it may be gone by now.
    parent_id TEXT COLLATE "C",
    name TEXT COLLATE "C" NOT NULL,
    path TEXT COLLATE "C" NOT NULL,
    -- How many items the deletion took, this one included.
    items BIGINT NOT NULL,
    deleted_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, deletion_id)
);

CREATE UNIQUE INDEX trash_by_item ON trash (workspace_id, kind, item_id);
CREATE INDEX trash_by_time ON trash (workspace_id, deleted_at, deletion_id);
CREATE INDEX trash_by_age ON trash (deleted_at);

-- Removing a row for good looks for what still refers to it, in trash too.
CREATE INDEX files_by_any_folder ON files (workspace_id, folder_id);
CREATE INDEX files_by_content ON files (workspace_id, content_hash);
CREATE INDEX folders_by_any_parent ON folders (workspace_id, parent_id);

INSERT INTO trash (workspace_id, deletion_id, kind, item_id, parent_id, name, path, items, deleted_at)
SELECT d.workspace_id, d.deletion_id, 2, d.id, d.parent_id, d.name, '/' || d.name,
    (SELECT COUNT(*) FROM folders x WHERE x.workspace_id = d.workspace_id AND x.deletion_id = d.deletion_id)
    + (SELECT COUNT(*) FROM files x WHERE x.workspace_id = d.workspace_id AND x.deletion_id = d.deletion_id),
    d.deleted_at
FROM folders d
WHERE d.deletion_id IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM folders p
    WHERE p.workspace_id = d.workspace_id AND p.id = d.parent_id AND p.deletion_id = d.deletion_id
);

INSERT INTO trash (workspace_id, deletion_id, kind, item_id, parent_id, name, path, items, deleted_at)
SELECT f.workspace_id, f.deletion_id, 1, f.id, f.folder_id, f.name, '/' || f.name, 1, f.deleted_at
FROM files f
WHERE f.deletion_id IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM trash t WHERE t.workspace_id = f.workspace_id AND t.deletion_id = f.deletion_id
);
