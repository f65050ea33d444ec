//! Webhooks: endpoints that receive the changes of a workspace, signed.

use std::sync::Arc;

use axum::extract::{OriginalUri, State};
use axum::response::IntoResponse as _;
use cairn_chassis::status::Problem;
use cairn_proto::domain::WebhookDeliveryState;
use cairn_proto::ids::{WebhookDeliveryId, WebhookId, WorkspaceId};
use http::StatusCode;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::Answer;
use crate::answers::{Links, ReplayedDeliveries, TestedWebhook, Webhook, WebhookDelivery, WebhookWithSecret};
use crate::extract::{Json, JsonIfSent, PathIds, Query};
use crate::json_body::JsonBody;
use crate::operations::Paging;
use crate::operations::person::Person;
use crate::operations::webhooks::{self, CreateWebhook, ReplayDeliveries, UpdateWebhook};
use crate::rest::paging;
use crate::schema::inputs;

inputs!(ListDeliveries);

/// Which deliveries.
#[derive(Debug, Deserialize, ToSchema, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(super) struct ListDeliveries {
    /// Only those that are that far: `pending`, `delivered`, `dead` or `replaying`.
    state: Option<WebhookDeliveryState>,
    /// How many at once: 1 to 200, 50 when left out.
    #[schema(minimum = 1, maximum = 200)]
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
    /// Where to go on: from the `Link` header of the page before.
    cursor: Option<String>,
}

/// List the webhooks of a workspace; for owners and admins.
#[utoipa::path(
    get, path = "/api/workspaces/{id}/webhooks", operation_id = "listWebhooks", tag = "Webhooks",
    params(("id" = String, Path, format = "uuid", description = "The workspace.")),
    responses((status = 200, description = "The webhooks, by name.", body = Vec<Webhook>)),
)]
pub(super) async fn list(person: Person) -> Answer {
    Ok(JsonBody(webhooks::list(&person).await?).into_response())
}

/// Make a webhook, which is sent what changes from then on; for owners and admins. The answer has its secret, and no other has.
#[utoipa::path(
    post, path = "/api/workspaces/{id}/webhooks", operation_id = "createWebhook", tag = "Webhooks",
    params(("id" = String, Path, format = "uuid", description = "The workspace.")),
    request_body = CreateWebhook,
    responses((status = 201, description = "The webhook and its secret.", body = WebhookWithSecret)),
)]
pub(super) async fn create(person: Person, Json(input): Json<CreateWebhook>) -> Answer {
    let created = webhooks::create(&person, input).await?;
    Ok((StatusCode::CREATED, JsonBody(created)).into_response())
}

/// Read a webhook and how it stands; for owners and admins.
#[utoipa::path(
    get, path = "/api/workspaces/{id}/webhooks/{webhookId}", operation_id = "getWebhook", tag = "Webhooks",
    params(("id" = String, Path, format = "uuid", description = "The workspace."), ("webhookId" = String, Path, format = "uuid", description = "The webhook.")),
    responses((status = 200, description = "The webhook.", body = Webhook)),
)]
pub(super) async fn get(person: Person, PathIds(_, id): PathIds<WorkspaceId, WebhookId>) -> Answer {
    Ok(JsonBody(webhooks::get(&person, id).await?).into_response())
}

/// Change a webhook, enable it or disable it; for owners and admins. What is under way is tried at once.
#[utoipa::path(
    patch, path = "/api/workspaces/{id}/webhooks/{webhookId}", operation_id = "updateWebhook", tag = "Webhooks",
    params(("id" = String, Path, format = "uuid", description = "The workspace."), ("webhookId" = String, Path, format = "uuid", description = "The webhook.")),
    request_body = UpdateWebhook,
    responses((status = 200, description = "The webhook.", body = Webhook)),
)]
pub(super) async fn update(
    person: Person,
    PathIds(_, id): PathIds<WorkspaceId, WebhookId>,
    Json(input): Json<UpdateWebhook>,
) -> Answer {
    Ok(JsonBody(webhooks::update(&person, id, input).await?).into_response())
}

/// Delete a webhook with its deliveries; for owners and admins.
#[utoipa::path(
    delete, path = "/api/workspaces/{id}/webhooks/{webhookId}", operation_id = "deleteWebhook", tag = "Webhooks",
    params(("id" = String, Path, format = "uuid", description = "The workspace."), ("webhookId" = String, Path, format = "uuid", description = "The webhook.")),
    responses((status = 204, description = "The webhook is gone.")),
)]
pub(super) async fn delete(person: Person, PathIds(_, id): PathIds<WorkspaceId, WebhookId>) -> Answer {
    webhooks::delete(&person, id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Give a webhook another secret; for owners and admins. The one before signs as well for a day.
#[utoipa::path(
    post, path = "/api/workspaces/{id}/webhooks/{webhookId}/rotate", operation_id = "rotateWebhookSecret", tag = "Webhooks",
    params(("id" = String, Path, format = "uuid", description = "The workspace."), ("webhookId" = String, Path, format = "uuid", description = "The webhook.")),
    responses((status = 200, description = "The webhook and its new secret.", body = WebhookWithSecret)),
)]
pub(super) async fn rotate(person: Person, PathIds(_, id): PathIds<WorkspaceId, WebhookId>) -> Answer {
    Ok(JsonBody(webhooks::rotate(&person, id).await?).into_response())
}

/// Send a ping to a webhook once, also when it is disabled; for owners and admins.
#[utoipa::path(
    post, path = "/api/workspaces/{id}/webhooks/{webhookId}/test", operation_id = "testWebhook", tag = "Webhooks",
    params(("id" = String, Path, format = "uuid", description = "The workspace."), ("webhookId" = String, Path, format = "uuid", description = "The webhook.")),
    responses((status = 200, description = "What came of it, also when it did not arrive.", body = TestedWebhook)),
)]
pub(super) async fn test(person: Person, PathIds(_, id): PathIds<WorkspaceId, WebhookId>) -> Answer {
    Ok(JsonBody(webhooks::test(&person, id).await?).into_response())
}

/// List the deliveries to a webhook: the last that arrived, those under way, and the dead letters; for owners and admins.
#[utoipa::path(
    get, path = "/api/workspaces/{id}/webhooks/{webhookId}/deliveries", operation_id = "listWebhookDeliveries", tag = "Webhooks",
    params(("id" = String, Path, format = "uuid", description = "The workspace."), ("webhookId" = String, Path, format = "uuid", description = "The webhook."), ListDeliveries),
    responses((status = 200, description = "The deliveries, newest first.", body = Vec<WebhookDelivery>)),
)]
pub(super) async fn deliveries(
    State(links): State<Arc<Links>>,
    OriginalUri(uri): OriginalUri,
    person: Person,
    PathIds(_, id): PathIds<WorkspaceId, WebhookId>,
    Query(query): Query<ListDeliveries>,
) -> Answer {
    let page = Paging { limit: query.limit, cursor: query.cursor };
    Ok(paging::respond(webhooks::deliveries(&person, id, query.state, page).await?, &uri, &links))
}

/// Have dead letters of a webhook tried anew, one or all; for owners and admins. They keep their ids.
#[utoipa::path(
    post, path = "/api/workspaces/{id}/webhooks/{webhookId}/replay", operation_id = "replayWebhookDeliveries", tag = "Webhooks",
    params(("id" = String, Path, format = "uuid", description = "The workspace."), ("webhookId" = String, Path, format = "uuid", description = "The webhook.")),
    request_body(content = Option<ReplayDeliveries>),
    responses((status = 202, description = "How many are tried anew.", body = ReplayedDeliveries)),
)]
pub(super) async fn replay(
    person: Person,
    PathIds(_, id): PathIds<WorkspaceId, WebhookId>,
    JsonIfSent(input): JsonIfSent<ReplayDeliveries>,
) -> Answer {
    let no_delivery = |_| Problem::not_found("there is no such delivery of this webhook");
    let delivery = input.delivery_id.map(|id| id.parse::<WebhookDeliveryId>().map_err(no_delivery));
    let replayed = webhooks::replay(&person, id, delivery.transpose()?).await?;
    Ok((StatusCode::ACCEPTED, JsonBody(replayed)).into_response())
}
