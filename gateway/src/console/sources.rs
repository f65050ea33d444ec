//! Connected sources: their settings, runs and documents (contract, "Connected sources").

use std::sync::Arc;

use axum::extract::{self, FromRequestParts, OriginalUri, State};
use axum::response::IntoResponse as _;
use cairn_chassis::status::Problem;
use cairn_proto::ids::{DocumentId, SourceId, SourceRunId, WorkspaceId};
use http::StatusCode;
use http::request::Parts;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::Answer;
use crate::answers::{CheckedSource, ConnectedSource, Links, RetainedDocument, SourceDocument, SourceRun};
use crate::error::Error;
use crate::extract::{Json, JsonIfSent, PathIds, Query};
use crate::json_body::JsonBody;
use crate::operations::Paging;
use crate::operations::person::Person;
use crate::operations::sources::{
    self, CheckSource, ConnectSource, DocumentFilter, SyncSource, UpdateSource,
};
use crate::rest::paging;
use crate::schema::inputs;

inputs!(ListRuns, ListDocuments);

/// Which part of the list.
#[derive(Debug, Deserialize, ToSchema, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(super) struct ListRuns {
    /// How many at once: 1 to 200, 50 when left out.
    #[schema(minimum = 1, maximum = 200)]
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
    /// Where to go on: from the `Link` header of the page before.
    cursor: Option<String>,
}

/// Which documents.
#[derive(Debug, Deserialize, ToSchema, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(super) struct ListDocuments {
    /// Only those that stand so: `pending`, `indexing`, `indexed`, `catalog` or `failed`.
    status: Option<String>,
    /// Only those whose title holds this, whatever the case of its letters.
    #[schema(max_length = 255)]
    #[param(max_length = 255)]
    title: Option<String>,
    /// How many at once: 1 to 200, 50 when left out.
    #[schema(minimum = 1, maximum = 200)]
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
    /// Where to go on: from the `Link` header of the page before.
    cursor: Option<String>,
}

/// A run of the path `/api/workspaces/{id}/sources/{sourceId}/runs/{runId}…`.
#[derive(Debug)]
pub(super) struct RunPath {
    source: SourceId,
    run: SourceRunId,
}

impl<S: Send + Sync> FromRequestParts<S> for RunPath {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Error> {
        let no_run = || Problem::not_found("there is no such run in this workspace");
        let path = extract::Path::<(String, String, String)>::from_request_parts(parts, state).await;
        let extract::Path((_, source, run)) = path.map_err(|_| no_run())?;
        let source = source.parse().map_err(|_| no_run())?;
        Ok(Self { source, run: run.parse().map_err(|_| no_run())? })
    }
}

/// List the connected sources of a workspace.
#[utoipa::path(
    get, path = "/api/workspaces/{id}/sources", operation_id = "listConnectedSources", tag = "Sources",
    params(("id" = String, Path, format = "uuid", description = "The workspace.")),
    responses((status = 200, description = "The sources, by name.", body = Vec<ConnectedSource>)),
)]
pub(super) async fn list(person: Person) -> Answer {
    Ok(JsonBody(sources::list_connected(&person).await?).into_response())
}

/// Connect a source; for owners and admins. Whoever may read the whole workspace will see what its credentials see.
#[utoipa::path(
    post, path = "/api/workspaces/{id}/sources", operation_id = "connectSource", tag = "Sources",
    params(("id" = String, Path, format = "uuid", description = "The workspace.")),
    request_body = ConnectSource,
    responses((status = 201, description = "The source; its first run is queued.", body = ConnectedSource)),
)]
pub(super) async fn connect(person: Person, Json(input): Json<ConnectSource>) -> Answer {
    let connected = sources::connect(&person, input).await?;
    Ok((StatusCode::CREATED, JsonBody(connected)).into_response())
}

/// Ask a provider whether it takes settings and credentials; for owners and admins. Nothing is stored.
#[utoipa::path(
    post, path = "/api/workspaces/{id}/sources/check", operation_id = "checkSource", tag = "Sources",
    params(("id" = String, Path, format = "uuid", description = "The workspace.")),
    request_body = CheckSource,
    responses((status = 200, description = "What the provider says, also when it refuses.", body = CheckedSource)),
)]
pub(super) async fn check(person: Person, Json(input): Json<CheckSource>) -> Answer {
    Ok(JsonBody(sources::check(&person, input).await?).into_response())
}

/// Read how a source is connected and how it stands.
#[utoipa::path(
    get, path = "/api/workspaces/{id}/sources/{sourceId}", operation_id = "getSource", tag = "Sources",
    params(("id" = String, Path, format = "uuid", description = "The workspace."), ("sourceId" = String, Path, format = "uuid", description = "The source.")),
    responses((status = 200, description = "The source.", body = ConnectedSource)),
)]
pub(super) async fn get(person: Person, PathIds(_, id): PathIds<WorkspaceId, SourceId>) -> Answer {
    Ok(JsonBody(sources::get(&person, id).await?).into_response())
}

/// Change a source; for owners and admins.
#[utoipa::path(
    patch, path = "/api/workspaces/{id}/sources/{sourceId}", operation_id = "updateSource", tag = "Sources",
    params(("id" = String, Path, format = "uuid", description = "The workspace."), ("sourceId" = String, Path, format = "uuid", description = "The source.")),
    request_body = UpdateSource,
    responses((status = 200, description = "The source.", body = ConnectedSource)),
)]
pub(super) async fn update(
    person: Person,
    PathIds(_, id): PathIds<WorkspaceId, SourceId>,
    Json(input): Json<UpdateSource>,
) -> Answer {
    Ok(JsonBody(sources::update(&person, id, input).await?).into_response())
}

/// Disconnect a source; for owners and admins. What is kept of it goes from search at once.
#[utoipa::path(
    delete, path = "/api/workspaces/{id}/sources/{sourceId}", operation_id = "disconnectSource", tag = "Sources",
    params(("id" = String, Path, format = "uuid", description = "The workspace."), ("sourceId" = String, Path, format = "uuid", description = "The source.")),
    responses((status = 204, description = "The source is disconnected.")),
)]
pub(super) async fn disconnect(person: Person, PathIds(_, id): PathIds<WorkspaceId, SourceId>) -> Answer {
    sources::disconnect(&person, id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Queue a run of a source; for owners and admins.
#[utoipa::path(
    post, path = "/api/workspaces/{id}/sources/{sourceId}/sync", operation_id = "syncSource", tag = "Sources",
    params(("id" = String, Path, format = "uuid", description = "The workspace."), ("sourceId" = String, Path, format = "uuid", description = "The source.")),
    request_body(content = Option<SyncSource>),
    responses((status = 202, description = "The run.", body = SourceRun)),
)]
pub(super) async fn sync(
    person: Person,
    PathIds(_, id): PathIds<WorkspaceId, SourceId>,
    JsonIfSent(input): JsonIfSent<SyncSource>,
) -> Answer {
    let queued = sources::sync(&person, id, input).await?;
    Ok((StatusCode::ACCEPTED, JsonBody(queued)).into_response())
}

/// List the runs of a source.
#[utoipa::path(
    get, path = "/api/workspaces/{id}/sources/{sourceId}/runs", operation_id = "listSourceRuns", tag = "Sources",
    params(("id" = String, Path, format = "uuid", description = "The workspace."), ("sourceId" = String, Path, format = "uuid", description = "The source."), ListRuns),
    responses((status = 200, description = "The runs, newest first.", body = Vec<SourceRun>)),
)]
pub(super) async fn runs(
    State(links): State<Arc<Links>>,
    OriginalUri(uri): OriginalUri,
    person: Person,
    PathIds(_, id): PathIds<WorkspaceId, SourceId>,
    Query(query): Query<ListRuns>,
) -> Answer {
    let page = Paging { limit: query.limit, cursor: query.cursor };
    Ok(paging::respond(sources::runs(&person, id, page).await?, &uri, &links))
}

/// Read a run.
#[utoipa::path(
    get, path = "/api/workspaces/{id}/sources/{sourceId}/runs/{runId}", operation_id = "getSourceRun", tag = "Sources",
    params(("id" = String, Path, format = "uuid", description = "The workspace."), ("sourceId" = String, Path, format = "uuid", description = "The source."), ("runId" = String, Path, format = "uuid", description = "The run.")),
    responses((status = 200, description = "The run.", body = SourceRun)),
)]
pub(super) async fn run(person: Person, path: RunPath) -> Answer {
    Ok(JsonBody(sources::run(&person, path.source, path.run).await?).into_response())
}

/// Cancel a run that is not over; for owners and admins. The next run goes on where it stopped.
#[utoipa::path(
    post, path = "/api/workspaces/{id}/sources/{sourceId}/runs/{runId}/cancel", operation_id = "cancelSourceRun", tag = "Sources",
    params(("id" = String, Path, format = "uuid", description = "The workspace."), ("sourceId" = String, Path, format = "uuid", description = "The source."), ("runId" = String, Path, format = "uuid", description = "The run.")),
    responses((status = 202, description = "The run, which ends soon.", body = SourceRun)),
)]
pub(super) async fn cancel(person: Person, path: RunPath) -> Answer {
    let cancelled = sources::cancel(&person, path.source, path.run).await?;
    Ok((StatusCode::ACCEPTED, JsonBody(cancelled)).into_response())
}

/// List the documents of a source, with those that could not be read.
#[utoipa::path(
    get, path = "/api/workspaces/{id}/sources/{sourceId}/documents", operation_id = "listDocumentsOfSource", tag = "Sources",
    params(("id" = String, Path, format = "uuid", description = "The workspace."), ("sourceId" = String, Path, format = "uuid", description = "The source."), ListDocuments),
    responses((status = 200, description = "The documents, by title.", body = Vec<SourceDocument>)),
)]
pub(super) async fn documents(
    State(links): State<Arc<Links>>,
    OriginalUri(uri): OriginalUri,
    person: Person,
    PathIds(_, id): PathIds<WorkspaceId, SourceId>,
    Query(query): Query<ListDocuments>,
) -> Answer {
    let page = Paging { limit: query.limit, cursor: query.cursor };
    let filter = DocumentFilter { source: Some(id), status: query.status, title: query.title };
    Ok(paging::respond(sources::documents_of(&person, filter, page).await?, &uri, &links))
}

/// Read a document of a source by its id here, with the text that is retained of it. Its provider is not asked.
#[utoipa::path(
    get, path = "/api/workspaces/{id}/source-documents/{documentId}", operation_id = "getSourceDocument", tag = "Sources",
    params(("id" = String, Path, format = "uuid", description = "The workspace."), ("documentId" = String, Path, format = "uuid", description = "The document.")),
    responses((status = 200, description = "The document.", body = RetainedDocument)),
)]
pub(super) async fn document(person: Person, PathIds(_, id): PathIds<WorkspaceId, DocumentId>) -> Answer {
    Ok(JsonBody(sources::document(&person, id).await?).into_response())
}

/// Have a document of a source that failed tried again at once; for members who may write. A run is queued that reads it before
/// all others, or, when its text is there, it is indexed anew. What has not failed is left as it is.
#[utoipa::path(
    post, path = "/api/workspaces/{id}/source-documents/{documentId}/retry", operation_id = "retrySourceDocument", tag = "Sources",
    params(("id" = String, Path, format = "uuid", description = "The workspace."), ("documentId" = String, Path, format = "uuid", description = "The document.")),
    responses((status = 202, description = "The document, which keeps its error until it was tried.", body = SourceDocument)),
)]
pub(super) async fn retry(person: Person, PathIds(_, id): PathIds<WorkspaceId, DocumentId>) -> Answer {
    Ok((StatusCode::ACCEPTED, JsonBody(sources::retry(&person, id).await?)).into_response())
}
