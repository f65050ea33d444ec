//! Who did what in a workspace (contract, "What agents did"): every member may know.

use std::sync::Arc;

use axum::extract::{OriginalUri, State};
use axum::response::IntoResponse as _;
use cairn_proto::domain::TrashKind;
use http::StatusCode;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::Answer;
use crate::answers::{ActivityEntry, Author, Links, Undo};
use crate::extract::{Json, Query};
use crate::json_body::JsonBody;
use crate::operations::activity::UndoActivity;
use crate::operations::person::Person;
use crate::operations::{Paging, activity};
use crate::rest::{paging, written};
use crate::schema::inputs;

inputs!(ListActivity);

/// Which part of the list.
#[derive(Debug, Deserialize, ToSchema, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(super) struct ListActivity {
    /// How many at once: 1 to 200, 50 when left out.
    #[schema(minimum = 1, maximum = 200)]
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
    /// Where to go on: from the `Link` header of the page before. A page may be short, even empty, and still have one.
    cursor: Option<String>,
    /// Only what this person, token or grant did, by id.
    principal: Option<String>,
    /// Only what was done to items of this kind.
    kind: Option<TrashKind>,
    /// Only what was done to what stood in this folder, or below it.
    #[schema(format = "uuid")]
    #[param(format = "uuid")]
    folder_id: Option<String>,
    /// From this time on (RFC 3339).
    #[schema(format = DateTime)]
    #[param(format = DateTime)]
    since: Option<String>,
    /// Before this time (RFC 3339).
    #[schema(format = DateTime)]
    #[param(format = DateTime)]
    until: Option<String>,
}

/// List who did what to files, folders, databases, records and memories.
#[utoipa::path(
    get, path = "/api/workspaces/{id}/activity", operation_id = "listActivity", tag = "Activity",
    params(("id" = String, Path, format = "uuid", description = "The workspace."), ListActivity),
    responses((status = 200, description = "What was done, the latest first. Entries are kept for 180 days.", body = Vec<ActivityEntry>)),
)]
pub(super) async fn list(
    State(links): State<Arc<Links>>,
    OriginalUri(uri): OriginalUri,
    person: Person,
    Query(query): Query<ListActivity>,
) -> Answer {
    let asked = activity::ActivityFilter {
        principal: query.principal,
        kind: query.kind,
        folder: query.folder_id,
        since: activity::time("since", query.since.as_deref())?,
        until: activity::time("until", query.until.as_deref())?,
    };
    let page = Paging { limit: query.limit, cursor: query.cursor };
    let listed = activity::list(&person, asked, page).await?;
    Ok(paging::linked(&listed.entries, listed.next, &uri, &links))
}

/// List who did something, as far as that is still known.
#[utoipa::path(
    get, path = "/api/workspaces/{id}/activity/actors", operation_id = "listActors", tag = "Activity",
    params(("id" = String, Path, format = "uuid", description = "The workspace.")),
    responses((status = 200, description = "People, tokens and grants, by id; at most 200.", body = Vec<Author>)),
)]
pub(super) async fn actors(person: Person) -> Answer {
    Ok(JsonBody(activity::actors(&person).await?).into_response())
}

/// Undo what somebody did, or some entries: what was made goes to trash, what was deleted comes back, what was changed is as
/// it was before. What somebody else has changed since is left alone and named.
///
/// Each item is taken back by a write of its own, which stands in the activity: so an undo can be undone. It may be sent
/// again: what is as it was already is not touched. It takes the permissions to write and to delete.
#[utoipa::path(
    post, path = "/api/workspaces/{id}/activity/undo", operation_id = "undoActivity", tag = "Activity",
    params(("id" = String, Path, format = "uuid", description = "The workspace.")),
    request_body = UndoActivity,
    responses((status = 200, description = "What was done, or would be, and what is left alone.", body = Undo)),
)]
pub(super) async fn undo(person: Person, Json(input): Json<UndoActivity>) -> Answer {
    Ok(written(StatusCode::OK, activity::undo(&person, input).await?))
}
