//! The trash of a workspace: list, restore, permanently delete. The person's role there decides.

use std::sync::Arc;

use axum::extract::{self, FromRequestParts, OriginalUri, State};
use axum::response::IntoResponse as _;
use cairn_chassis::status::Problem;
use cairn_proto::domain::TrashKind;
use http::StatusCode;
use http::request::Parts;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::Answer;
use crate::answers::{Author, Links, RestoredItem, TrashItem};
use crate::error::Error;
use crate::extract::Query;
use crate::json_body::JsonBody;
use crate::operations::person::Person;
use crate::operations::{Paging, trash};
use crate::rest::{done, paging, written};
use crate::schema::inputs;

inputs!(ListTrash);

/// Which part of the list.
#[derive(Debug, Deserialize, ToSchema, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(super) struct ListTrash {
    /// How many at once: 1 to 1000, 1000 when left out.
    #[schema(minimum = 1, maximum = 1000)]
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// Where to go on: from the `Link` header of the page before.
    cursor: Option<String>,
    /// Only what this person, token or grant deleted, by id.
    principal: Option<String>,
}

/// An item of the path `/api/workspaces/{id}/trash/{kind}/{itemId}…`.
#[derive(Debug)]
pub(super) struct Item {
    kind: TrashKind,
    id: String,
}

impl<S: Send + Sync> FromRequestParts<S> for Item {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Error> {
        let no_item = || Problem::not_found("there is no such item in trash");
        let path = extract::Path::<(String, TrashKind, String)>::from_request_parts(parts, state).await;
        let extract::Path((_, kind, id)) = path.map_err(|_| no_item())?;
        Ok(Self { kind, id })
    }
}

/// List what is in trash.
#[utoipa::path(
    get, path = "/api/workspaces/{id}/trash", operation_id = "listTrash", tag = "Trash",
    params(("id" = String, Path, format = "uuid", description = "The workspace."), ListTrash),
    responses((status = 200, description = "The items, the latest deletion first.", body = Vec<TrashItem>)),
)]
pub(super) async fn list(
    State(links): State<Arc<Links>>,
    OriginalUri(uri): OriginalUri,
    person: Person,
    Query(query): Query<ListTrash>,
) -> Answer {
    let page = Paging { limit: query.limit, cursor: query.cursor };
    Ok(paging::respond(trash::list(&person, query.principal, page).await?, &uri, &links))
}

/// List who deleted what is in trash.
#[utoipa::path(
    get, path = "/api/workspaces/{id}/trash/deleters", operation_id = "listDeleters", tag = "Trash",
    params(("id" = String, Path, format = "uuid", description = "The workspace.")),
    responses((status = 200, description = "People, tokens and grants, by id; at most 200.", body = Vec<Author>)),
)]
pub(super) async fn deleters(person: Person) -> Answer {
    Ok(JsonBody(trash::deleters(&person).await?).into_response())
}

/// Read how an item came to be in trash.
///
/// What went along with something else is answered with that: its own id and kind are others then.
#[utoipa::path(
    get, path = "/api/workspaces/{id}/trash/{kind}/{itemId}", operation_id = "getTrashItem", tag = "Trash",
    params(("id" = String, Path, format = "uuid", description = "The workspace."), ("kind" = TrashKind, Path, description = "What kind of item."), ("itemId" = String, Path, format = "uuid", description = "The item.")),
    responses((status = 200, description = "What was deleted, when and by whom.", body = TrashItem)),
)]
pub(super) async fn get(person: Person, item: Item) -> Answer {
    Ok(JsonBody(trash::get(&person.upstreams, &person.call, item.kind, item.id).await?).into_response())
}

/// Bring an item back, with all that went along with it.
#[utoipa::path(
    post, path = "/api/workspaces/{id}/trash/{kind}/{itemId}/restore", operation_id = "restoreItem", tag = "Trash",
    params(("id" = String, Path, format = "uuid", description = "The workspace."), ("kind" = TrashKind, Path, description = "What kind of item."), ("itemId" = String, Path, format = "uuid", description = "The item.")),
    responses((status = 200, description = "What came back, and where to.", body = RestoredItem)),
)]
pub(super) async fn restore(person: Person, item: Item) -> Answer {
    Ok(written(StatusCode::OK, trash::restore(&person.upstreams, &person.call, item.kind, item.id).await?))
}

/// Remove an item for good, with all that went along with it.
#[utoipa::path(
    delete, path = "/api/workspaces/{id}/trash/{kind}/{itemId}", operation_id = "deleteItemPermanently", tag = "Trash",
    params(("id" = String, Path, format = "uuid", description = "The workspace."), ("kind" = TrashKind, Path, description = "What kind of item."), ("itemId" = String, Path, format = "uuid", description = "The item.")),
    responses((status = 204, description = "The item is gone for good.")),
)]
pub(super) async fn remove(person: Person, item: Item) -> Answer {
    Ok(done(&trash::remove(&person.upstreams, &person.call, item.kind, item.id).await?))
}
