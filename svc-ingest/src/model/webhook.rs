//! Webhooks and their deliveries.

use cairn_chassis::clock::Timestamp;
use cairn_proto::domain::{ChangeKind, WebhookDeliveryState, WebhookStatus};
use cairn_proto::ids::{FolderId, UserId, WebhookDeliveryId, WebhookId, WorkspaceId};

/// The cursors of a webhook in both feeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Positions {
    /// In the feed of svc-content.
    pub(crate) content: u64,
    /// In the feed of this service.
    pub(crate) ingest: u64,
}

/// A webhook without its secrets.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Webhook {
    pub(crate) workspace: WorkspaceId,
    pub(crate) id: WebhookId,
    pub(crate) name: String,
    pub(crate) url: String,
    /// Empty for all kinds.
    pub(crate) kinds: Vec<ChangeKind>,
    /// Empty for the whole workspace.
    pub(crate) folders: Vec<FolderId>,
    pub(crate) enabled: bool,
    /// Why it was disabled automatically; absent if a person did.
    pub(crate) disabled_reason: Option<String>,
    /// The user on whose behalf it reads.
    pub(crate) acts_for: UserId,
    pub(crate) acts_for_name: String,
    /// Until when the previous secret signs as well.
    pub(crate) previous_until: Option<Timestamp>,
    pub(crate) positions: Positions,
    /// When the deliverer polls it next.
    pub(crate) look_at: Timestamp,
    /// Since when svc-auth denies its user the permission.
    pub(crate) refused_since: Option<Timestamp>,
    /// Consecutive dead letters since the last success.
    pub(crate) given_up: u32,
    pub(crate) last: LastAttempt,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
}

/// The outcome of the last attempt.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct LastAttempt {
    pub(crate) tried_at: Option<Timestamp>,
    pub(crate) delivered_at: Option<Timestamp>,
    /// Absent if there was no response.
    pub(crate) status: Option<u16>,
    /// Why it failed, for people.
    pub(crate) error: Option<String>,
}

impl Webhook {
    /// The status.
    pub(crate) const fn status(&self) -> WebhookStatus {
        match (self.enabled, &self.last.error) {
            (false, _) => WebhookStatus::Disabled,
            (true, Some(_)) => WebhookStatus::Failing,
            (true, None) => WebhookStatus::Active,
        }
    }
}

/// A webhook with the state of its deliveries.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WebhookDetails {
    pub(crate) webhook: Webhook,
    pub(crate) dead_letters: u64,
    /// When the delivery at the head of the queue is retried.
    pub(crate) next_try_at: Option<Timestamp>,
}

/// A delivery, which may take several attempts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Delivery {
    pub(crate) id: WebhookDeliveryId,
    pub(crate) state: WebhookDeliveryState,
    /// The number of changes in it.
    pub(crate) changes: u32,
    /// Attempts since it was created or replayed.
    pub(crate) tries: u32,
    /// Absent if there will be no further attempt.
    pub(crate) next_try_at: Option<Timestamp>,
    pub(crate) last_tried_at: Option<Timestamp>,
    pub(crate) last_status: Option<u16>,
    pub(crate) last_error: Option<String>,
    pub(crate) created_at: Timestamp,
}

/// The payload of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Contents {
    /// A JSON array of changes.
    pub(crate) changes: String,
    /// The cursor after them, as `GET /api/v1/changes` takes it.
    pub(crate) next: String,
}
