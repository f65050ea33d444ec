-- expand
-- A row for each database and each record that was deleted by itself before these were listed.
INSERT INTO trash (workspace_id, deletion_id, kind, item_id, parent_id, name, path, items, deleted_at)
SELECT d.workspace_id, d.deletion_id, 4, d.id, d.folder_id, d.name, '/' || d.name, 1, d.deleted_at
FROM databases d
WHERE d.deletion_id IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM trash t WHERE t.workspace_id = d.workspace_id AND t.deletion_id = d.deletion_id
);

INSERT INTO trash (workspace_id, deletion_id, kind, item_id, parent_id, name, path, items, deleted_at)
SELECT r.workspace_id, r.deletion_id, 5, r.id, r.database_id,
    CASE WHEN TRIM(r.title) = '' THEN 'Untitled' ELSE SUBSTR(r.title, 1, 255) END,
    '/' || d.name || '/' || CASE WHEN TRIM(r.title) = '' THEN 'Untitled' ELSE SUBSTR(r.title, 1, 255) END,
    1, r.deleted_at
FROM records r
JOIN databases d ON d.workspace_id = r.workspace_id AND d.id = r.database_id
WHERE r.deletion_id IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM trash t WHERE t.workspace_id = r.workspace_id AND t.deletion_id = r.deletion_id
);

-- A folder that is removed for good lets go of the databases in trash, too.
UPDATE databases SET folder_id = NULL
WHERE deletion_id IS NOT NULL AND folder_id IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM folders f WHERE f.workspace_id = databases.workspace_id AND f.id = databases.folder_id
);

CREATE INDEX databases_by_any_folder ON databases (workspace_id, folder_id);
