-- expand
-- Addresses to which the change feed is sent, signed.
CREATE TABLE webhooks (
    workspace_id TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    url TEXT COLLATE "C" NOT NULL,
    -- JSON lists; empty: all kinds, the whole workspace.
    kinds TEXT COLLATE "C" NOT NULL,
    folders TEXT COLLATE "C" NOT NULL,
    enabled BOOLEAN NOT NULL,
    -- Why, when nobody disabled it by hand.
    disabled_reason TEXT COLLATE "C",
    -- The person for whom it acts.
    acts_for TEXT COLLATE "C" NOT NULL,
    acts_for_name TEXT COLLATE "C" NOT NULL,
    -- The secrets that sign, sealed.
    secrets BYTEA NOT NULL,
    sealing TEXT COLLATE "C" NOT NULL,
    -- Until when the secret before the last one signs as well.
    previous_until BIGINT,
    -- How far the feeds were read for it.
    content_position BIGINT NOT NULL,
    ingest_position BIGINT NOT NULL,
    -- When somebody is to look after it.
    look_at BIGINT NOT NULL,
    holder TEXT COLLATE "C",
    lease_until BIGINT,
    refused_since BIGINT,
    -- Deliveries that were given up since one arrived.
    given_up BIGINT NOT NULL,
    last_tried_at BIGINT,
    last_delivered_at BIGINT,
    last_status BIGINT,
    last_error TEXT COLLATE "C",
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, id)
);

CREATE INDEX webhooks_due ON webhooks (look_at) WHERE enabled;

-- What is to be sent is written before it is sent, together with how far the feeds were read.
CREATE TABLE webhook_deliveries (
    workspace_id TEXT COLLATE "C" NOT NULL,
    webhook_id TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    -- 1 pending, 2 delivered, 3 dead, 4 replaying.
    state BIGINT NOT NULL,
    -- A JSON list of entries of the feed, without any content; empty when they have arrived.
    changes TEXT COLLATE "C" NOT NULL,
    change_count BIGINT NOT NULL,
    next_place TEXT COLLATE "C" NOT NULL,
    tries BIGINT NOT NULL,
    next_try_at BIGINT,
    last_tried_at BIGINT,
    last_status BIGINT,
    last_error TEXT COLLATE "C",
    created_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, webhook_id, id)
);

-- What comes after waits for it.
CREATE UNIQUE INDEX webhook_deliveries_pending ON webhook_deliveries (workspace_id, webhook_id) WHERE state = 1;
CREATE INDEX webhook_deliveries_by_state ON webhook_deliveries (workspace_id, webhook_id, state, id);
CREATE INDEX webhook_deliveries_dead ON webhook_deliveries (created_at) WHERE state = 3;
