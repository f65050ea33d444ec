-- expand
-- Questions of which a workspace knows what must be found; a few for each workspace.
CREATE TABLE golden_questions (
    workspace_id TEXT NOT NULL,
    -- Sorts by time.
    id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    -- 'token', 'grant', 'user'
    author_kind TEXT NOT NULL,
    author_id TEXT NOT NULL,
    author_name TEXT NOT NULL,
    query TEXT NOT NULL,
    -- A cairn.retrieval.v1.SearchContextRequest.
    search BLOB NOT NULL,
    -- As 'KIND_FILE'.
    kind TEXT NOT NULL,
    document_id TEXT NOT NULL,
    -- The passage that must be found; empty when any of the document will do.
    quote TEXT NOT NULL,
    start_line BIGINT NOT NULL,
    end_line BIGINT NOT NULL,
    content_hash TEXT NOT NULL,
    PRIMARY KEY (workspace_id, id)
);
