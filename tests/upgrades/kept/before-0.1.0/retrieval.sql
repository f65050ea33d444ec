CREATE TABLE migrations (name TEXT NOT NULL PRIMARY KEY, hash TEXT NOT NULL, step TEXT, version TEXT);
CREATE TABLE leases (
    name TEXT NOT NULL PRIMARY KEY,
    holder TEXT NOT NULL,
    expires_at BIGINT NOT NULL
) WITHOUT ROWID;
CREATE TABLE retrieval_counts (
    workspace_id TEXT NOT NULL,
    -- Days since 1970-01-01, UTC.
    day BIGINT NOT NULL,
    -- 'search_context', 'related_files'
    operation TEXT NOT NULL,
    -- 'rest', 'mcp', 'console', 'grpc'
    channel TEXT NOT NULL,
    -- 'keyword', 'semantic', 'hybrid', 'searches', 'none'
    strategy TEXT NOT NULL,
    plan TEXT NOT NULL,
    -- 'token', 'grant', 'user', 'service'
    principal_kind TEXT NOT NULL,
    principal_id TEXT NOT NULL,
    total BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    -- Answered with nothing.
    empty BIGINT NOT NULL,
    cached BIGINT NOT NULL,
    results BIGINT NOT NULL,
    content_bytes BIGINT NOT NULL,
    provider_operations BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, day, operation, channel, strategy, plan, principal_kind, principal_id)
) WITHOUT ROWID;
CREATE TABLE retrieval_latencies (
    workspace_id TEXT NOT NULL,
    day BIGINT NOT NULL,
    operation TEXT NOT NULL,
    bucket BIGINT NOT NULL,
    answers BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, day, operation, bucket)
) WITHOUT ROWID;
CREATE TABLE retrieval_documents (
    workspace_id TEXT NOT NULL,
    day BIGINT NOT NULL,
    document_id TEXT NOT NULL,
    -- As 'KIND_FILE'.
    kind TEXT NOT NULL,
    retrievals BIGINT NOT NULL,
    -- How many of them had it first.
    best BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, day, document_id)
) WITHOUT ROWID;
CREATE TABLE retrieval_firsts (
    workspace_id TEXT NOT NULL,
    channel TEXT NOT NULL,
    -- 'connection', 'retrieval', 'success'
    milestone TEXT NOT NULL,
    at BIGINT NOT NULL,
    -- Empty for a connection.
    operation TEXT NOT NULL,
    PRIMARY KEY (workspace_id, channel, milestone)
) WITHOUT ROWID;
CREATE TABLE workspace_states (
    workspace_id TEXT NOT NULL PRIMARY KEY,
    -- Rises with each change: what is older changes nothing.
    revision BIGINT NOT NULL,
    suspended BOOLEAN NOT NULL,
    -- Whether nothing of it is left here.
    purged BOOLEAN NOT NULL,
    changed_at BIGINT NOT NULL
) WITHOUT ROWID;
CREATE TABLE questions (
    workspace_id TEXT NOT NULL,
    -- Sorts by time.
    id TEXT NOT NULL,
    asked_at BIGINT NOT NULL,
    -- 'search_context', 'query_source'
    operation TEXT NOT NULL,
    -- 'token', 'grant', 'user', 'service'
    principal_kind TEXT NOT NULL,
    principal_id TEXT NOT NULL,
    principal_name TEXT NOT NULL,
    -- Who asked, or whose token or app did; empty when nobody.
    person_id TEXT NOT NULL,
    channel TEXT NOT NULL,
    client TEXT NOT NULL,
    query TEXT NOT NULL,
    -- 'answered', 'weak', 'unanswered'
    outcome TEXT NOT NULL,
    results BIGINT NOT NULL,
    best_score REAL,
    took_micros BIGINT NOT NULL,
    -- A cairn.retrieval.v1.QuestionDetails, without texts of documents.
    details BLOB NOT NULL,
    PRIMARY KEY (workspace_id, id)
);
CREATE TABLE question_logs (
    workspace_id TEXT NOT NULL PRIMARY KEY,
    days BIGINT NOT NULL
);
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
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0001_leases', '08e3fd209edc14944dd2ebbbb4cb29ea35c6ce31d43f6f9a819aec68696596b9', 'expand', '0.1.0');
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0002_analytics', 'be80f3332aa43257b2fda213a95154fac0d087dc38ac2618344c4fc6a6ede9b8', 'expand', '0.1.0');
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0001_workspace_states', 'dbc2f3e8d29966c61bd5789f6a24b417338a09610e82583b50457896cdd08b61', 'expand', '0.1.0');
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0003_questions', '35f57caa2f1c149705336cf1a273203b07d8694e27e12a1b92eb4ba68289fdfd', 'expand', '0.1.0');
INSERT INTO "migrations" ("name", "hash", "step", "version") VALUES ('0004_golden', '68e182efbb316ac9f0320fc3c0c5b28cd723bb221b576ecf5ce57ce8291ff57a', 'expand', '0.1.0');
INSERT INTO "retrieval_counts" ("workspace_id", "day", "operation", "channel", "strategy", "plan", "principal_kind", "principal_id", "total", "failed", "empty", "cached", "results", "content_bytes", "provider_operations") VALUES ('01a22379-1167-7358-bf7b-21787192759a', 20785, 'search_context', 'rest', 'keyword', 'selfhosted', 'token', '01a22379-1167-7451-802a-e7f7bc74155e', 3, 0, 0, 0, 3, 157, 0);
INSERT INTO "retrieval_latencies" ("workspace_id", "day", "operation", "bucket", "answers") VALUES ('01a22379-1167-7358-bf7b-21787192759a', 20785, 'search_context', 80, 1);
INSERT INTO "retrieval_latencies" ("workspace_id", "day", "operation", "bucket", "answers") VALUES ('01a22379-1167-7358-bf7b-21787192759a', 20785, 'search_context', 81, 1);
INSERT INTO "retrieval_latencies" ("workspace_id", "day", "operation", "bucket", "answers") VALUES ('01a22379-1167-7358-bf7b-21787192759a', 20785, 'search_context', 97, 1);
INSERT INTO "retrieval_documents" ("workspace_id", "day", "document_id", "kind", "retrievals", "best") VALUES ('01a22379-1167-7358-bf7b-21787192759a', 20785, '01a2237a-91ab-75d9-95d0-ac8ed07eac39', 'KIND_FILE', 1, 1);
INSERT INTO "retrieval_documents" ("workspace_id", "day", "document_id", "kind", "retrievals", "best") VALUES ('01a22379-1167-7358-bf7b-21787192759a', 20785, '01a2237a-9221-7c90-8074-c16bf5ddc303', 'KIND_INGESTED', 1, 1);
INSERT INTO "retrieval_documents" ("workspace_id", "day", "document_id", "kind", "retrievals", "best") VALUES ('01a22379-1167-7358-bf7b-21787192759a', 20785, '01a2237a-92fb-7000-8066-150870a97f59', 'KIND_FILE', 1, 1);
INSERT INTO "retrieval_firsts" ("workspace_id", "channel", "milestone", "at", "operation") VALUES ('01a22379-1167-7358-bf7b-21787192759a', 'rest', 'retrieval', 1795891565634692, 'search_context');
INSERT INTO "retrieval_firsts" ("workspace_id", "channel", "milestone", "at", "operation") VALUES ('01a22379-1167-7358-bf7b-21787192759a', 'rest', 'success', 1795891565634692, 'search_context');
CREATE INDEX retrieval_counts_by_day ON retrieval_counts (day);
CREATE INDEX retrieval_latencies_by_day ON retrieval_latencies (day);
CREATE INDEX retrieval_documents_by_day ON retrieval_documents (day);
