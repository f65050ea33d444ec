-- expand
-- Memories go to trash, as everything else does. A slug is that of one live memory: one in trash leaves it to others.
ALTER TABLE memories ADD COLUMN deleted_at BIGINT;
ALTER TABLE memories ADD COLUMN deletion_id TEXT;

DROP INDEX memories_by_slug;
DROP INDEX memories_by_name;
DROP INDEX memories_public;

CREATE UNIQUE INDEX memories_by_slug ON memories (workspace_id, slug) WHERE deleted_at IS NULL;
CREATE INDEX memories_by_name ON memories (workspace_id, name, id) WHERE deleted_at IS NULL;
CREATE INDEX memories_by_deletion ON memories (workspace_id, deletion_id) WHERE deletion_id IS NOT NULL;
-- An export without a token may name the memory alone.
CREATE INDEX memories_public ON memories (id) WHERE is_public AND deleted_at IS NULL;
