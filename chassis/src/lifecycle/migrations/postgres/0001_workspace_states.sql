-- expand
-- What svc-auth said of workspaces that were deleted. Of any other workspace there is no row.
CREATE TABLE workspace_states (
    workspace_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    -- Rises with each change: what is older changes nothing.
    revision BIGINT NOT NULL,
    suspended BOOLEAN NOT NULL,
    -- Whether nothing of it is left here.
    purged BOOLEAN NOT NULL,
    changed_at BIGINT NOT NULL
);
