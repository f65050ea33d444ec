-- expand
-- What a workspace keeps, counted by each write, so that no limit costs a scan: files with those in trash, and the bytes of
-- bodies and assets, each content once, and of the values of records and their versions.
CREATE TABLE workspace_usage (
    workspace_id TEXT NOT NULL,
    files BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    PRIMARY KEY (workspace_id)
) WITHOUT ROWID;

INSERT INTO workspace_usage (workspace_id, files, bytes)
SELECT workspace_id, CAST(SUM(files) AS BIGINT), CAST(SUM(bytes) AS BIGINT) FROM (
    SELECT workspace_id, COUNT(*) AS files, 0 AS bytes FROM files GROUP BY workspace_id
    UNION ALL
    SELECT workspace_id, 0, SUM(size_bytes) FROM bodies GROUP BY workspace_id
    UNION ALL
    SELECT workspace_id, 0, SUM(size_bytes) FROM asset_objects GROUP BY workspace_id
    UNION ALL
    SELECT workspace_id, 0, SUM(OCTET_LENGTH(field_values)) FROM records GROUP BY workspace_id
    UNION ALL
    SELECT workspace_id, 0, SUM(OCTET_LENGTH(field_values)) FROM record_versions GROUP BY workspace_id
) AS kept GROUP BY workspace_id;
