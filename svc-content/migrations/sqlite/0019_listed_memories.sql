-- expand
-- Whether search engines may list the page of a public memory.
ALTER TABLE memories ADD COLUMN is_listed BOOLEAN NOT NULL DEFAULT FALSE;
