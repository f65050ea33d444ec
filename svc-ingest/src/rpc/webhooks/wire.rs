//! Converts webhooks and their deliveries from and to protobuf.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::wording;
use cairn_proto::domain::ChangeKind;
use cairn_proto::ingest::v1 as proto;

use crate::model::{Delivery, WebhookDetails};
use crate::webhooks::{Draft, Patch, Tested, Verdict};

/// The fields that an update mask may name.
const FIELDS: [&str; 5] = ["name", "url", "kinds", "folder_ids", "enabled"];

pub(super) fn draft(sent: proto::WebhookDraft) -> Draft {
    Draft {
        name: sent.name,
        url: sent.url,
        kinds: sent.kinds.into_iter().map(ChangeKind::from_number).collect(),
        folders: sent.folder_ids,
        enabled: sent.enabled,
    }
}

/// The id of the webhook to update, and the patch.
pub(super) fn patch(request: proto::UpdateWebhookRequest) -> (String, Patch) {
    let paths = request.update_mask.map(|mask| mask.paths).unwrap_or_default();
    let (known, unknown): (Vec<String>, Vec<String>) =
        paths.into_iter().partition(|path| FIELDS.contains(&path.as_str()));
    let draft = draft(request.webhook.unwrap_or_default());
    let named = |field: &str| known.iter().any(|known| known == field);
    let unknown =
        unknown.into_iter().map(|path| format!("'{path}' cannot be updated; {} can", wording::and(&FIELDS)));
    let patch = Patch {
        name: named("name").then_some(draft.name),
        url: named("url").then_some(draft.url),
        kinds: named("kinds").then_some(draft.kinds),
        folders: named("folder_ids").then_some(draft.folders),
        enabled: named("enabled").then_some(draft.enabled),
        unknown_fields: unknown.collect(),
    };
    (request.webhook_id, patch)
}

pub(super) fn webhook(shown: WebhookDetails) -> proto::Webhook {
    let WebhookDetails { webhook, dead_letters, next_try_at } = shown;
    let status = webhook.status().number();
    proto::Webhook {
        id: webhook.id.to_string(),
        name: webhook.name,
        url: webhook.url,
        kinds: webhook.kinds.into_iter().map(ChangeKind::number).collect(),
        folder_ids: webhook.folders.iter().map(ToString::to_string).collect(),
        enabled: webhook.enabled,
        status,
        disabled_reason: webhook.disabled_reason,
        acts_for_id: webhook.acts_for.to_string(),
        acts_for_name: webhook.acts_for_name,
        previous_secret_until: webhook.previous_until.map(Timestamp::to_proto),
        last_tried_at: webhook.last.tried_at.map(Timestamp::to_proto),
        last_delivered_at: webhook.last.delivered_at.map(Timestamp::to_proto),
        last_status: webhook.last.status.map(u32::from),
        last_error: webhook.last.error,
        next_try_at: next_try_at.filter(|_| webhook.enabled).map(Timestamp::to_proto),
        dead_letters,
        created_at: Some(webhook.created_at.to_proto()),
        updated_at: Some(webhook.updated_at.to_proto()),
    }
}

pub(super) fn delivery(delivery: Delivery) -> proto::WebhookDelivery {
    proto::WebhookDelivery {
        id: delivery.id.to_string(),
        state: delivery.state.number(),
        changes: delivery.changes,
        tries: delivery.tries,
        created_at: Some(delivery.created_at.to_proto()),
        last_tried_at: delivery.last_tried_at.map(Timestamp::to_proto),
        next_try_at: delivery.next_try_at.map(Timestamp::to_proto),
        last_status: delivery.last_status.map(u32::from),
        last_error: delivery.last_error,
    }
}

pub(super) fn tested(tested: Tested) -> proto::TestWebhookResponse {
    let Tested { outcome, took } = tested;
    let ok = outcome.verdict == Verdict::Arrived;
    proto::TestWebhookResponse {
        ok,
        status: outcome.status.map(u32::from),
        message: if ok { "the ping arrived".to_owned() } else { outcome.message },
        duration_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
    }
}
