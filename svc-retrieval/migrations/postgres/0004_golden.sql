-- expand
-- Questions of which a workspace knows what must be found; a few for each workspace.
CREATE TABLE golden_questions (
    workspace_id TEXT COLLATE "C" NOT NULL,
    -- Sorts by time.
    id TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    -- 'token', 'grant', 'user'
    author_kind TEXT COLLATE "C" NOT NULL,
    author_id TEXT COLLATE "C" NOT NULL,
    author_name TEXT COLLATE "C" NOT NULL,
    query TEXT COLLATE "C" NOT NULL,
    -- A cairn.retrieval.v1.SearchContextRequest.
    search BYTEA NOT NULL,
    -- As 'KIND_FILE'.
    kind TEXT COLLATE "C" NOT NULL,
    document_id TEXT COLLATE "C" NOT NULL,
    -- The passage that must be found; empty when any of the document will do.
    quote TEXT COLLATE "C" NOT NULL,
    start_line BIGINT NOT NULL,
    end_line BIGINT NOT NULL,
    content_hash TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (workspace_id, id)
);
