//! Webhooks and their deliveries.

use cairn_chassis::status::Problem;
use cairn_proto::domain::{ChangeKind, WebhookDeliveryState, WebhookStatus};
use cairn_proto::ingest::v1 as proto;
use serde::Serialize;
use utoipa::ToSchema;

use super::{optional_time, time};

/// An address to which the changes of a workspace are sent. Its secret is in no answer but those that made it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Webhook {
    #[schema(format = "uuid")]
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) url: String,
    /// Of which kinds it is told; empty: of all.
    pub(crate) kinds: Vec<ChangeKind>,
    /// Of which folders, with all below them; empty: of the whole workspace.
    pub(crate) folder_ids: Vec<String>,
    pub(crate) enabled: bool,
    pub(crate) status: WebhookStatus,
    /// Why it is disabled, when nobody did it by hand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) disabled_reason: Option<String>,
    pub(crate) acts_for: WebhookPerson,
    /// Until when the secret before signs as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub(crate) previous_secret_until: Option<String>,
    #[schema(required = true)]
    pub(crate) last_tried_at: Option<String>,
    #[schema(required = true)]
    pub(crate) last_delivered_at: Option<String>,
    /// What the last try was answered with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_status: Option<u32>,
    /// Why the last try failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_error: Option<String>,
    /// When the next try is, of one that fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub(crate) next_try_at: Option<String>,
    /// Deliveries that were given up and are still kept.
    pub(crate) dead_letters: u64,
    #[schema(format = DateTime)]
    pub(crate) created_at: String,
    #[schema(format = DateTime)]
    pub(crate) updated_at: String,
}

/// The owner or admin for whom a webhook acts.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WebhookPerson {
    #[schema(format = "uuid")]
    pub(crate) id: String,
    pub(crate) name: String,
}

impl TryFrom<proto::Webhook> for Webhook {
    type Error = Problem;

    fn try_from(webhook: proto::Webhook) -> Result<Self, Problem> {
        let unknown = || Problem::internal("a webhook has an unknown status");
        Ok(Self {
            id: webhook.id,
            name: webhook.name,
            url: webhook.url,
            kinds: webhook.kinds.into_iter().filter_map(ChangeKind::from_number).collect(),
            folder_ids: webhook.folder_ids,
            enabled: webhook.enabled,
            status: WebhookStatus::from_number(webhook.status).ok_or_else(unknown)?,
            disabled_reason: webhook.disabled_reason,
            acts_for: WebhookPerson { id: webhook.acts_for_id, name: webhook.acts_for_name },
            previous_secret_until: optional_time(webhook.previous_secret_until.as_ref()),
            last_tried_at: optional_time(webhook.last_tried_at.as_ref()),
            last_delivered_at: optional_time(webhook.last_delivered_at.as_ref()),
            last_status: webhook.last_status,
            last_error: webhook.last_error,
            next_try_at: optional_time(webhook.next_try_at.as_ref()),
            dead_letters: webhook.dead_letters,
            created_at: time(webhook.created_at.as_ref()),
            updated_at: time(webhook.updated_at.as_ref()),
        })
    }
}

/// A webhook with its secret, which is shown this once.
#[derive(Serialize, ToSchema)]
pub(crate) struct WebhookWithSecret {
    #[serde(flatten)]
    pub(crate) webhook: Webhook,
    /// What the receiver checks signatures with, as Standard Webhooks has it.
    #[schema(examples("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"))]
    pub(crate) secret: String,
}

cairn_chassis::debug_fields!(WebhookWithSecret { webhook });

/// A message to a webhook, which has the same id however often it is tried.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WebhookDelivery {
    /// What `webhook-id` says.
    #[schema(format = "uuid")]
    pub(crate) id: String,
    pub(crate) state: WebhookDeliveryState,
    /// How many changes it tells of.
    pub(crate) changes: u32,
    pub(crate) tries: u32,
    #[schema(format = DateTime)]
    pub(crate) created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub(crate) last_tried_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub(crate) next_try_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_status: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_error: Option<String>,
}

impl TryFrom<proto::WebhookDelivery> for WebhookDelivery {
    type Error = Problem;

    fn try_from(delivery: proto::WebhookDelivery) -> Result<Self, Problem> {
        let unknown = || Problem::internal("a delivery to a webhook has an unknown state");
        Ok(Self {
            id: delivery.id,
            state: WebhookDeliveryState::from_number(delivery.state).ok_or_else(unknown)?,
            changes: delivery.changes,
            tries: delivery.tries,
            created_at: time(delivery.created_at.as_ref()),
            last_tried_at: optional_time(delivery.last_tried_at.as_ref()),
            next_try_at: optional_time(delivery.next_try_at.as_ref()),
            last_status: delivery.last_status,
            last_error: delivery.last_error,
        })
    }
}

/// What came of a ping.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TestedWebhook {
    pub(crate) ok: bool,
    /// What it was answered with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<u32>,
    pub(crate) message: String,
    /// How long the answer took.
    pub(crate) duration_ms: u64,
}

impl From<proto::TestWebhookResponse> for TestedWebhook {
    fn from(tested: proto::TestWebhookResponse) -> Self {
        let proto::TestWebhookResponse { ok, status, message, duration_ms } = tested;
        Self { ok, status, message, duration_ms }
    }
}

/// How many deliveries are tried anew.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReplayedDeliveries {
    pub(crate) replayed: u64,
}
