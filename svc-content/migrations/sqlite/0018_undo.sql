-- expand
-- The entry before which the item stood as it stands after this one; '' for what is no undo.
ALTER TABLE activity ADD COLUMN undoes TEXT NOT NULL DEFAULT '';

CREATE INDEX activity_by_item ON activity (workspace_id, item_id, position, place);
