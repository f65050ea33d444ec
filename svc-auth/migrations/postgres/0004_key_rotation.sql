-- expand
-- When the key came into its state.
ALTER TABLE signing_keys ADD COLUMN state_since BIGINT NOT NULL DEFAULT 0;
UPDATE signing_keys SET state_since = created_at;
-- From when on an active key is to be replaced, whatever its age; absent: by its age only.
ALTER TABLE signing_keys ADD COLUMN rotate_after BIGINT;

-- 'next' is published and does not sign yet. Replicas agree on one.
CREATE UNIQUE INDEX signing_keys_next ON signing_keys (state) WHERE state = 'next';
