//! Addresses to which changes are sent, and what is sent to them.

use cairn_chassis::clock::Timestamp;
use cairn_proto::domain::{ChangeKind, WebhookDeliveryState, WebhookStatus};
use cairn_proto::ids::{FolderId, UserId, WebhookDeliveryId, WebhookId, WorkspaceId};

/// How far both feeds were read for a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Positions {
    /// In svc-content's.
    pub(crate) content: u64,
    /// In this service's.
    pub(crate) ingest: u64,
}

/// A webhook without its secrets.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Webhook {
    pub(crate) workspace: WorkspaceId,
    pub(crate) id: WebhookId,
    pub(crate) name: String,
    pub(crate) url: String,
    /// Empty: all of them.
    pub(crate) kinds: Vec<ChangeKind>,
    /// Empty: the whole workspace.
    pub(crate) folders: Vec<FolderId>,
    pub(crate) enabled: bool,
    /// Why it is disabled, when nobody did it by hand.
    pub(crate) disabled_reason: Option<String>,
    /// For whom it acts.
    pub(crate) acts_for: UserId,
    pub(crate) acts_for_name: String,
    /// Until when the secret before signs as well.
    pub(crate) previous_until: Option<Timestamp>,
    pub(crate) positions: Positions,
    /// When somebody is to look after it next.
    pub(crate) look_at: Timestamp,
    /// Since when svc-auth says that whom it acts for may not do this.
    pub(crate) refused_since: Option<Timestamp>,
    /// Deliveries that were given up since one arrived.
    pub(crate) given_up: u32,
    pub(crate) last: Last,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
}

/// What the last try came to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Last {
    pub(crate) tried_at: Option<Timestamp>,
    pub(crate) delivered_at: Option<Timestamp>,
    /// Absent when there was no answer.
    pub(crate) status: Option<u16>,
    /// Why it failed, for people.
    pub(crate) error: Option<String>,
}

impl Webhook {
    /// How it stands.
    pub(crate) const fn status(&self) -> WebhookStatus {
        match (self.enabled, &self.last.error) {
            (false, _) => WebhookStatus::Disabled,
            (true, Some(_)) => WebhookStatus::Failing,
            (true, None) => WebhookStatus::Active,
        }
    }
}

/// A webhook with what is kept beside it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ShownWebhook {
    pub(crate) webhook: Webhook,
    pub(crate) dead_letters: u64,
    /// When the delivery that others wait for is tried next.
    pub(crate) next_try_at: Option<Timestamp>,
}

/// A message to a webhook, however often it is tried.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Delivery {
    pub(crate) id: WebhookDeliveryId,
    pub(crate) state: WebhookDeliveryState,
    /// How many changes it tells of.
    pub(crate) changes: u32,
    /// Tries since it was made, or since somebody asked for it anew.
    pub(crate) tries: u32,
    /// Absent when there will be none.
    pub(crate) next_try_at: Option<Timestamp>,
    pub(crate) last_tried_at: Option<Timestamp>,
    pub(crate) last_status: Option<u16>,
    pub(crate) last_error: Option<String>,
    pub(crate) created_at: Timestamp,
}

/// What a delivery sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Contents {
    /// A JSON array of changes.
    pub(crate) changes: String,
    /// Where the feeds go on behind them, as `GET /api/v1/changes` takes it.
    pub(crate) next: String,
}
