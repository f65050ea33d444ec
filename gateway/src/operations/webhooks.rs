//! Webhooks: endpoints that receive the changes of a workspace.

use cairn_chassis::status::Problem;
use cairn_proto::domain::{ChangeKind, WebhookDeliveryState};
use cairn_proto::ids::{WebhookDeliveryId, WebhookId};
use cairn_proto::ingest::v1 as proto;
use prost_types::FieldMask;
use serde::Deserialize;
use utoipa::ToSchema;

use super::person::Person;
use super::{Page, Paging, answered, present};
use crate::answers::{ReplayedDeliveries, TestedWebhook, Webhook, WebhookDelivery, WebhookWithSecret};
use crate::schema::inputs;

inputs!(CreateWebhook, UpdateWebhook, ReplayDeliveries);

/// Where to send what.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CreateWebhook {
    /// What people call it.
    #[schema(min_length = 1, max_length = 100)]
    name: String,
    /// Where it is sent: an https address of a public host.
    #[schema(min_length = 1, max_length = 2000, examples("https://example.com/cairn"))]
    url: String,
    /// Of which kinds it is told: of all when empty or left out.
    #[serde(default)]
    #[schema(value_type = Vec<ChangeKind>, required = false, max_items = 7)]
    kinds: Option<Vec<ChangeKind>>,
    /// Of which folders, with all below them: of the whole workspace when empty or left out. A webhook keeps its folders.
    #[serde(default)]
    #[schema(value_type = Vec<String>, required = false, max_items = 100)]
    folder_ids: Option<Vec<String>>,
    /// Whether it is told at once: true when left out.
    #[serde(default)]
    #[schema(value_type = bool, required = false)]
    enabled: Option<bool>,
}

/// Changes of a webhook: fields that are left out stay as they are.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(min_properties = 1)]
pub(crate) struct UpdateWebhook {
    #[serde(default)]
    #[schema(value_type = String, required = false, min_length = 1, max_length = 100)]
    name: Option<String>,
    #[serde(default)]
    #[schema(value_type = String, required = false, min_length = 1, max_length = 2000)]
    url: Option<String>,
    #[serde(default)]
    #[schema(value_type = Vec<ChangeKind>, required = false, max_items = 7)]
    kinds: Option<Vec<ChangeKind>>,
    /// A webhook keeps its folders.
    #[serde(default)]
    #[schema(value_type = Vec<String>, required = false, max_items = 100)]
    folder_ids: Option<Vec<String>>,
    /// Whoever enables a webhook takes it over: it acts for them from then on.
    #[serde(default)]
    #[schema(value_type = bool, required = false)]
    enabled: Option<bool>,
}

/// What is to be tried anew.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ReplayDeliveries {
    /// One delivery that was given up: all of them when left out.
    #[schema(format = "uuid")]
    pub(crate) delivery_id: Option<String>,
}

/// All on one page: nobody has more than fit.
pub(crate) async fn list(person: &Person) -> Result<Vec<Webhook>, Problem> {
    let request = person.call.request(proto::ListWebhooksRequest {});
    let listed = answered(person.upstreams.webhooks().list_webhooks(request).await)?;
    listed.webhooks.into_iter().map(TryInto::try_into).collect()
}

pub(crate) async fn get(person: &Person, id: WebhookId) -> Result<Webhook, Problem> {
    let request = person.call.request(proto::GetWebhookRequest { webhook_id: id.to_string() });
    let found = answered(person.upstreams.webhooks().get_webhook(request).await)?;
    present(found.webhook)?.try_into()
}

/// Creates a webhook; its secret is returned only here.
pub(crate) async fn create(person: &Person, input: CreateWebhook) -> Result<WebhookWithSecret, Problem> {
    let webhook = proto::WebhookDraft {
        name: input.name,
        url: input.url,
        kinds: numbers(input.kinds),
        folder_ids: input.folder_ids.unwrap_or_default(),
        enabled: input.enabled.unwrap_or(true),
    };
    let request = person.call.request(proto::CreateWebhookRequest { webhook: Some(webhook) });
    let created = answered(person.upstreams.webhooks().create_webhook(request).await)?;
    let webhook = present(created.webhook)?.try_into()?;
    Ok(WebhookWithSecret { webhook, secret: created.secret })
}

pub(crate) async fn update(person: &Person, id: WebhookId, input: UpdateWebhook) -> Result<Webhook, Problem> {
    let given = [
        ("name", input.name.is_some()),
        ("url", input.url.is_some()),
        ("kinds", input.kinds.is_some()),
        ("folder_ids", input.folder_ids.is_some()),
        ("enabled", input.enabled.is_some()),
    ];
    let paths =
        given.into_iter().filter(|(_, is_given)| *is_given).map(|(field, _)| field.to_owned()).collect();
    let webhook = proto::WebhookDraft {
        name: input.name.unwrap_or_default(),
        url: input.url.unwrap_or_default(),
        kinds: numbers(input.kinds),
        folder_ids: input.folder_ids.unwrap_or_default(),
        enabled: input.enabled.unwrap_or_default(),
    };
    let request = person.call.request(proto::UpdateWebhookRequest {
        webhook_id: id.to_string(),
        webhook: Some(webhook),
        update_mask: Some(FieldMask { paths }),
    });
    let updated = answered(person.upstreams.webhooks().update_webhook(request).await)?;
    present(updated.webhook)?.try_into()
}

/// Enables or disables a webhook.
pub(crate) async fn switch(person: &Person, id: WebhookId, enabled: bool) -> Result<Webhook, Problem> {
    let input =
        UpdateWebhook { name: None, url: None, kinds: None, folder_ids: None, enabled: Some(enabled) };
    update(person, id, input).await
}

pub(crate) async fn delete(person: &Person, id: WebhookId) -> Result<(), Problem> {
    let request = person.call.request(proto::DeleteWebhookRequest { webhook_id: id.to_string() });
    answered(person.upstreams.webhooks().delete_webhook(request).await).map(drop)
}

/// Rotates the secret, which is returned only here.
pub(crate) async fn rotate(person: &Person, id: WebhookId) -> Result<WebhookWithSecret, Problem> {
    let request = person.call.request(proto::RotateWebhookSecretRequest { webhook_id: id.to_string() });
    let rotated = answered(person.upstreams.webhooks().rotate_webhook_secret(request).await)?;
    let webhook = present(rotated.webhook)?.try_into()?;
    Ok(WebhookWithSecret { webhook, secret: rotated.secret })
}

/// Sends a ping.
pub(crate) async fn test(person: &Person, id: WebhookId) -> Result<TestedWebhook, Problem> {
    let request = person.call.request(proto::TestWebhookRequest { webhook_id: id.to_string() });
    Ok(answered(person.upstreams.webhooks().test_webhook(request).await)?.into())
}

/// Deliveries, past and pending, newest first.
pub(crate) async fn deliveries(
    person: &Person,
    id: WebhookId,
    state: Option<WebhookDeliveryState>,
    page: Paging,
) -> Result<Page<WebhookDelivery>, Problem> {
    let request = person.call.request(proto::ListWebhookDeliveriesRequest {
        webhook_id: id.to_string(),
        state: state.map(WebhookDeliveryState::number).unwrap_or_default(),
        page_size: page.limit.unwrap_or_default(),
        page_token: page.cursor.unwrap_or_default(),
    });
    let listed = answered(person.upstreams.webhooks().list_webhook_deliveries(request).await)?;
    Page::try_read(listed.deliveries, listed.next_page_token, listed.total_size)
}

/// Retries deliveries that were given up.
pub(crate) async fn replay(
    person: &Person,
    id: WebhookId,
    delivery: Option<WebhookDeliveryId>,
) -> Result<ReplayedDeliveries, Problem> {
    let delivery_id = delivery.map(|delivery| delivery.to_string());
    let message = proto::ReplayWebhookDeliveriesRequest { webhook_id: id.to_string(), delivery_id };
    let request = person.call.request(message);
    let replayed = answered(person.upstreams.webhooks().replay_webhook_deliveries(request).await)?.replayed;
    Ok(ReplayedDeliveries { replayed })
}

fn numbers(kinds: Option<Vec<ChangeKind>>) -> Vec<i32> {
    kinds.unwrap_or_default().into_iter().map(ChangeKind::number).collect()
}
