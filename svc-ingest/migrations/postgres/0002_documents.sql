-- expand
-- Texts by their hash, equal ones of a workspace once.
CREATE TABLE bodies (
    workspace_id TEXT NOT NULL,
    hash TEXT NOT NULL,
    encoding BIGINT NOT NULL,
    size_bytes BIGINT NOT NULL,
    data BYTEA NOT NULL,
    PRIMARY KEY (workspace_id, hash)
);

-- A document has a name, a format and a hash from when its text is retained on. sent_hash is of the bytes that were sent.
CREATE TABLE ingested_documents (
    workspace_id TEXT NOT NULL,
    id TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    sent_hash TEXT NOT NULL,
    title TEXT NOT NULL,
    name TEXT,
    url TEXT,
    external_id TEXT,
    metadata TEXT,
    occurred_at BIGINT,
    status BIGINT NOT NULL,
    format BIGINT,
    content_hash TEXT,
    size_bytes BIGINT NOT NULL,
    chunk_count BIGINT,
    indexed_at BIGINT,
    error TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, id),
    FOREIGN KEY (workspace_id, content_hash) REFERENCES bodies (workspace_id, hash)
);

CREATE UNIQUE INDEX ingested_documents_by_key ON ingested_documents (workspace_id, idempotency_key);
CREATE UNIQUE INDEX ingested_documents_by_name ON ingested_documents (workspace_id, name);
CREATE INDEX ingested_documents_by_status ON ingested_documents (workspace_id, status, id);
CREATE INDEX ingested_documents_by_content ON ingested_documents (workspace_id, content_hash);

-- What a workspace keeps, counted by each write: ingested documents, and the bytes of bodies, each once, and of files that
-- are still to be read.
CREATE TABLE workspace_usage (
    workspace_id TEXT NOT NULL,
    documents BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    PRIMARY KEY (workspace_id)
);
