-- expand
-- Addresses to which the change feed is sent, signed.
CREATE TABLE webhooks (
    workspace_id TEXT NOT NULL,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    url TEXT NOT NULL,
    -- JSON lists; empty: all kinds, the whole workspace.
    kinds TEXT NOT NULL,
    folders TEXT NOT NULL,
    enabled BOOLEAN NOT NULL,
    -- Why, when nobody disabled it by hand.
    disabled_reason TEXT,
    -- The person for whom it acts.
    acts_for TEXT NOT NULL,
    acts_for_name TEXT NOT NULL,
    -- The secrets that sign, sealed.
    secrets BLOB NOT NULL,
    sealing TEXT NOT NULL,
    -- Until when the secret before the last one signs as well.
    previous_until BIGINT,
    -- How far the feeds were read for it.
    content_position BIGINT NOT NULL,
    ingest_position BIGINT NOT NULL,
    -- When somebody is to look after it.
    look_at BIGINT NOT NULL,
    holder TEXT,
    lease_until BIGINT,
    refused_since BIGINT,
    -- Deliveries that were given up since one arrived.
    given_up BIGINT NOT NULL,
    last_tried_at BIGINT,
    last_delivered_at BIGINT,
    last_status BIGINT,
    last_error TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, id)
) WITHOUT ROWID;

CREATE INDEX webhooks_due ON webhooks (look_at) WHERE enabled;

-- What is to be sent is written before it is sent, together with how far the feeds were read.
CREATE TABLE webhook_deliveries (
    workspace_id TEXT NOT NULL,
    webhook_id TEXT NOT NULL,
    id TEXT NOT NULL,
    -- 1 pending, 2 delivered, 3 dead, 4 replaying.
    state BIGINT NOT NULL,
    -- A JSON list of entries of the feed, without any content; empty when they have arrived.
    changes TEXT NOT NULL,
    change_count BIGINT NOT NULL,
    next_place TEXT NOT NULL,
    tries BIGINT NOT NULL,
    next_try_at BIGINT,
    last_tried_at BIGINT,
    last_status BIGINT,
    last_error TEXT,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, webhook_id, id)
) WITHOUT ROWID;

-- What comes after waits for it.
CREATE UNIQUE INDEX webhook_deliveries_pending ON webhook_deliveries (workspace_id, webhook_id) WHERE state = 1;
CREATE INDEX webhook_deliveries_by_state ON webhook_deliveries (workspace_id, webhook_id, state, id);
CREATE INDEX webhook_deliveries_dead ON webhook_deliveries (created_at) WHERE state = 3;
