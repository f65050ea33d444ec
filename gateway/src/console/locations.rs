//! Locates the workspace of an item.

use axum::extract::Path;
use axum::response::IntoResponse as _;
use cairn_chassis::status::Problem;
use cairn_proto::domain::{DocumentKind, TrashKind};
use cairn_proto::ids::DocumentId;
use serde::Serialize;
use utoipa::ToSchema;

use super::Answer;
use crate::error::Error;
use crate::json_body::JsonBody;
use crate::operations::locations;
use crate::operations::person::Person;

/// Where an item stands.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ItemLocation {
    kind: TrashKind,
    #[schema(format = "uuid")]
    id: String,
    #[schema(format = "uuid")]
    workspace_id: String,
}

/// Find the workspace of an item, live or in trash, among those of the person.
#[utoipa::path(
    get, path = "/api/items/{kind}/{itemId}", operation_id = "locateItem", tag = "Workspaces",
    params(("kind" = TrashKind, Path, description = "What kind of item."), ("itemId" = String, Path, format = "uuid", description = "The item.")),
    responses((status = 200, description = "Where it stands.", body = ItemLocation)),
)]
pub(super) async fn locate(
    person: Person,
    path: Result<Path<(TrashKind, DocumentId)>, axum::extract::rejection::PathRejection>,
) -> Answer {
    let no_item = |_| Error::from(Problem::not_found("there is no such item in your workspaces"));
    let Path((kind, id)) = path.map_err(no_item)?;
    let workspace_id = locations::locate(&person, kind, id).await?.to_string();
    Ok(JsonBody(ItemLocation { kind, id: id.to_string(), workspace_id }).into_response())
}

/// Where a document from outside is.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct DocumentLocation {
    kind: DocumentKind,
    #[schema(format = "uuid")]
    id: String,
    #[schema(format = "uuid")]
    workspace_id: String,
}

/// Find the workspace of a document from outside, ingested or of a connected source, among those of the person.
#[utoipa::path(
    get, path = "/api/documents/{documentId}", operation_id = "locateDocument", tag = "Workspaces",
    params(("documentId" = String, Path, format = "uuid", description = "The document.")),
    responses((status = 200, description = "Where it is.", body = DocumentLocation)),
)]
pub(super) async fn locate_document(
    person: Person,
    path: Result<Path<DocumentId>, axum::extract::rejection::PathRejection>,
) -> Answer {
    let no_document = |_| Error::from(Problem::not_found("there is no such document in your workspaces"));
    let Path(id) = path.map_err(no_document)?;
    let (workspace, kind) = locations::locate_document(&person, id).await?;
    let location = DocumentLocation { kind, id: id.to_string(), workspace_id: workspace.to_string() };
    Ok(JsonBody(location).into_response())
}
