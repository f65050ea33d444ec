//! The trash of a workspace: what it holds, bringing it back, removing it for good. The person's role there decides.

use axum::extract::{self, FromRequestParts, OriginalUri, State};
use axum::response::IntoResponse as _;
use cairn_chassis::status::Problem;
use cairn_proto::content::v1 as proto;
use cairn_proto::domain::TrashKind;
use http::StatusCode;
use http::request::Parts;
use serde::Deserialize;
use utoipa::ToSchema;

use super::{Answer, answered};
use crate::answers::{RestoredItem, TrashItem};
use crate::app::App;
use crate::auth::Member;
use crate::change;
use crate::error::Error;
use crate::extract::Query;
use crate::json_body::JsonBody;
use crate::operations::Page;
use crate::rest::{change_header, paging};
use crate::schema::inputs;

inputs!(ListTrash);

/// Which part of the list.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListTrash {
    /// How many at once: 1 to 1000, 1000 when left out.
    #[schema(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// Where to go on: from the `Link` header of the page before.
    cursor: Option<String>,
}

/// An item of the path `/api/workspaces/{id}/trash/{kind}/{itemId}…`.
#[derive(Debug)]
pub(super) struct Item {
    kind: TrashKind,
    id: String,
}

impl FromRequestParts<App> for Item {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Error> {
        let no_item = || Problem::not_found("there is no such item in trash");
        let path = extract::Path::<(String, TrashKind, String)>::from_request_parts(parts, app).await;
        let extract::Path((_, kind, id)) = path.map_err(|_| no_item())?;
        Ok(Self { kind, id })
    }
}

/// The latest deletion first.
pub(super) async fn list(
    State(app): State<App>,
    OriginalUri(uri): OriginalUri,
    member: Member,
    Query(query): Query<ListTrash>,
) -> Answer {
    let message = member.call.request(proto::ListTrashRequest {
        page_size: query.limit.unwrap_or_default(),
        page_token: query.cursor.unwrap_or_default(),
    });
    let listed = answered(app.upstreams.trash().list_trash(message).await)?;
    let page: Page<TrashItem> = Page::read(listed.items, listed.next_page_token, listed.total_size);
    Ok(paging::respond(page, &uri, &app.links))
}

/// Brings an item back, with all that went along with it.
pub(super) async fn restore(State(app): State<App>, member: Member, item: Item) -> Answer {
    let message = member.call.request(proto::RestoreItemRequest { kind: item.kind.into(), item_id: item.id });
    let restored = answered(app.upstreams.trash().restore_item(message).await)?;
    let change = change_header(&change::of_content(restored.change_position));
    Ok((change, JsonBody(RestoredItem::from(restored))).into_response())
}

/// Removes an item for good, with all that went along with it.
pub(super) async fn remove(State(app): State<App>, member: Member, item: Item) -> Answer {
    let request = proto::DeleteItemPermanentlyRequest { kind: item.kind.into(), item_id: item.id };
    let message = member.call.request(request);
    let removed = answered(app.upstreams.trash().delete_item_permanently(message).await)?;
    let change = change_header(&change::of_content(removed.change_position));
    Ok((StatusCode::NO_CONTENT, change).into_response())
}
