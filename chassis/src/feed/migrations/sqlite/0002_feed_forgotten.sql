-- expand
-- The last position up to which entries may be missing, since the same item was told of again later; behind it there is no gap.
ALTER TABLE feed_heads ADD COLUMN forgotten BIGINT NOT NULL DEFAULT 0;
