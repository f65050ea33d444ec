-- expand
-- Who deleted what is in trash; empty for deletions from before.
ALTER TABLE trash ADD COLUMN author_kind TEXT NOT NULL DEFAULT '';
ALTER TABLE trash ADD COLUMN author_id TEXT NOT NULL DEFAULT '';
ALTER TABLE trash ADD COLUMN author_name TEXT NOT NULL DEFAULT '';
