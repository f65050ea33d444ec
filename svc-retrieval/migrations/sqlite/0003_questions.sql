-- expand
-- What was asked of a workspace whose owner has switched the question log on, and what was answered. Only here.
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

-- For how many days each workspace keeps its questions, as the last of them came with it.
CREATE TABLE question_logs (
    workspace_id TEXT NOT NULL PRIMARY KEY,
    days BIGINT NOT NULL
);
