-- expand
-- Documents whose text is still to be taken out of them. Of several processes, the one that is named by holder does it until
-- due_at; whoever comes then may take it over.
CREATE TABLE extractions (
    workspace_id TEXT NOT NULL,
    document_id TEXT NOT NULL,
    file_name TEXT,
    mime_type TEXT,
    is_html BOOLEAN NOT NULL,
    size_bytes BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    holder TEXT,
    due_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, document_id),
    FOREIGN KEY (workspace_id, document_id) REFERENCES ingested_documents (workspace_id, id)
);

CREATE INDEX extractions_by_time ON extractions (due_at);

-- What was sent, in pieces; without a document while it is still coming.
CREATE TABLE upload_pieces (
    workspace_id TEXT NOT NULL,
    document_id TEXT NOT NULL,
    place BIGINT NOT NULL,
    data BYTEA NOT NULL,
    PRIMARY KEY (workspace_id, document_id, place)
);
