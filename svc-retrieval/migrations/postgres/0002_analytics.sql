-- expand
-- Sums of what was asked of a workspace on a UTC day, by who asked how. What was asked is nowhere.
CREATE TABLE retrieval_counts (
    workspace_id TEXT COLLATE "C" NOT NULL,
    -- Days since 1970-01-01, UTC.
    day BIGINT NOT NULL,
    -- 'search_context', 'related_files'
    operation TEXT COLLATE "C" NOT NULL,
    -- 'rest', 'mcp', 'console', 'grpc'
    channel TEXT COLLATE "C" NOT NULL,
    -- 'keyword', 'semantic', 'hybrid', 'searches', 'none'
    strategy TEXT COLLATE "C" NOT NULL,
    plan TEXT COLLATE "C" NOT NULL,
    -- 'token', 'grant', 'user', 'service'
    principal_kind TEXT COLLATE "C" NOT NULL,
    principal_id TEXT COLLATE "C" NOT NULL,
    total BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    -- Answered with nothing.
    empty BIGINT NOT NULL,
    cached BIGINT NOT NULL,
    results BIGINT NOT NULL,
    content_bytes BIGINT NOT NULL,
    provider_operations BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, day, operation, channel, strategy, plan, principal_kind, principal_id)
);

CREATE INDEX retrieval_counts_by_day ON retrieval_counts (day);

-- How many answers took how long: a histogram of which only the buckets stand that hold something.
CREATE TABLE retrieval_latencies (
    workspace_id TEXT COLLATE "C" NOT NULL,
    day BIGINT NOT NULL,
    operation TEXT COLLATE "C" NOT NULL,
    bucket BIGINT NOT NULL,
    answers BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, day, operation, bucket)
);

CREATE INDEX retrieval_latencies_by_day ON retrieval_latencies (day);

-- The documents that answers held. Of a day that is over only the most frequent stay.
CREATE TABLE retrieval_documents (
    workspace_id TEXT COLLATE "C" NOT NULL,
    day BIGINT NOT NULL,
    document_id TEXT COLLATE "C" NOT NULL,
    -- As 'KIND_FILE'.
    kind TEXT COLLATE "C" NOT NULL,
    retrievals BIGINT NOT NULL,
    -- How many of them had it first.
    best BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, day, document_id)
);

CREATE INDEX retrieval_documents_by_day ON retrieval_documents (day);

-- When something first happened in a workspace; kept for good.
CREATE TABLE retrieval_firsts (
    workspace_id TEXT COLLATE "C" NOT NULL,
    channel TEXT COLLATE "C" NOT NULL,
    -- 'connection', 'retrieval', 'success'
    milestone TEXT COLLATE "C" NOT NULL,
    at BIGINT NOT NULL,
    -- Empty for a connection.
    operation TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (workspace_id, channel, milestone)
);
