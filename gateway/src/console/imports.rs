//! Archive imports (spec 4.10), for people.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{OriginalUri, Request, State};
use axum::handler::Handler as _;
use axum::middleware::map_response;
use axum::response::{IntoResponse as _, Response};
use cairn_proto::ids::SyncRunId;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use serde::Deserialize;
use serde_json::Map;
use utoipa::{IntoParams, ToSchema};

use super::Answer;
use super::assets::disposition;
use crate::answers::{ImportReport, ImportRun, Links};
use crate::auth::Authenticator;
use crate::class::Class;
use crate::extract::{PathId, Query};
use crate::json_body::JsonBody;
use crate::operations::Paging;
use crate::operations::imports::{self, AskedReport, ImportForm, WorkspaceAccess, form};
use crate::operations::person::Person;
use crate::rest::paging;
use crate::routes::Routes;
use crate::schema::inputs;

inputs!(ListImports);

/// RFC 9745: since the first of August 2026.
const DEPRECATION: (HeaderName, HeaderValue) =
    (HeaderName::from_static("deprecation"), HeaderValue::from_static("@1785542400"));
const SUCCESSOR: HeaderValue = HeaderValue::from_static("</api/import>; rel=\"successor-version\"");

/// Whose runs, and which part of the list.
#[derive(Debug, Deserialize, ToSchema, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(super) struct ListImports {
    /// The workspace.
    #[schema(format = "uuid")]
    #[param(format = "uuid")]
    #[expect(dead_code, reason = "who is let in goes by it, before the handler")]
    workspace_id: String,
    /// How many at once: 1 to 1000, 50 when left out.
    #[schema(minimum = 1, maximum = 1000)]
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// Where to go on: from the `Link` header of the page before.
    cursor: Option<String>,
}

/// The paths that imports had until August 2026, deprecated since: same handlers, with a `Deprecation` header.
pub(super) fn former_paths(person: Class, member: Class, uploading: Class) -> Routes {
    let marked = || map_response(mark);
    Routes::default()
        .post(uploading, "/api/migrations/preview", preview.layer(marked()))
        .get(member, "/api/migrations", list.layer(marked()))
        .get(person, "/api/migrations/{runId}", get.layer(marked()))
        .get(person, "/api/migrations/{runId}/report", report.layer(marked()))
        .post(person, "/api/migrations/{runId}/start", start.layer(marked()))
        .post(person, "/api/migrations/{runId}/cancel", cancel.layer(marked()))
        .post(person, "/api/migrations/{runId}/rollback", roll_back.layer(marked()))
}

async fn mark(mut response: Response) -> Response {
    let (name, value) = DEPRECATION;
    response.headers_mut().insert(name, value);
    response.headers_mut().append(header::LINK, SUCCESSOR);
    response
}

/// Preview an import: the archive of an Obsidian vault, or of a Notion export.
///
/// Nothing is written to the workspace: start the run for that. The archive may be as large as the plan's objects.
#[utoipa::path(
    post, path = "/api/import/preview", operation_id = "previewImport", tag = "Import",
    request_body(content = ImportForm, content_type = "multipart/form-data"),
    responses(
        (status = 201, description = "The run, which is ready.", body = ImportRun),
        (status = 413, description = "The archive is larger than the plan allows.", body = crate::error::ErrorBody),
    ),
)]
pub(super) async fn preview(
    State(authenticator): State<Arc<Authenticator>>,
    headers: HeaderMap,
    person: Person,
    request: Request,
) -> Answer {
    let access = WorkspaceAccess::of(&person, &authenticator, &headers);
    let run = form::receive(&access, &headers, request.into_body(), &mut Map::new()).await?;
    Ok((StatusCode::CREATED, JsonBody(run)).into_response())
}

/// List the import runs of a workspace, without warnings and results.
#[utoipa::path(
    get, path = "/api/import", operation_id = "listImports", tag = "Import", params(ListImports),
    responses((status = 200, description = "The runs, newest first.", body = Vec<ImportRun>)),
)]
pub(super) async fn list(
    State(links): State<Arc<Links>>,
    OriginalUri(uri): OriginalUri,
    // Extracted before the person: without a valid workspace nobody is admitted, and this reports why.
    Query(query): Query<ListImports>,
    person: Person,
) -> Answer {
    let page = Paging { limit: query.limit, cursor: query.cursor };
    Ok(paging::respond(imports::list(&person, page).await?, &uri, &links))
}

/// Read an import run: how far it is, and what became of each object when it is over.
#[utoipa::path(
    get, path = "/api/import/{runId}", operation_id = "getImport", tag = "Import",
    params(("runId" = String, Path, format = "uuid", description = "The run.")),
    responses((status = 200, description = "The run.", body = ImportRun)),
)]
pub(super) async fn get(
    State(authenticator): State<Arc<Authenticator>>,
    headers: HeaderMap,
    person: Person,
    PathId(id): PathId<SyncRunId>,
) -> Answer {
    Ok(JsonBody(WorkspaceAccess::of(&person, &authenticator, &headers).find(id).await?.1).into_response())
}

/// Download the report of an import run: of the dry run, of the execution, or of the rollback.
///
/// An object with `runId`, `provider`, `fileName`, `phase`, `root`, `counts`, `items`, `unresolvedLinks`, `ignored` and
/// `warnings`; paths are those of the archive.
#[utoipa::path(
    get, path = "/api/import/{runId}/report", operation_id = "getImportReport", tag = "Import",
    params(("runId" = String, Path, format = "uuid", description = "The run.")),
    responses((status = 200, description = "The report.", body = Object)),
)]
pub(super) async fn report(
    State(authenticator): State<Arc<Authenticator>>,
    headers: HeaderMap,
    person: Person,
    PathId(id): PathId<SyncRunId>,
) -> Answer {
    let (person, run) = WorkspaceAccess::of(&person, &authenticator, &headers).find(id).await?;
    let report = imports::report(&person, id).await?;
    let name = format!("{} import report.json", run.file_name.trim_end_matches(".zip"));
    let mut response = Response::new(Body::from_stream(report));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Ok(disposition) = HeaderValue::from_str(&disposition(false, &name)) {
        headers.insert(header::CONTENT_DISPOSITION, disposition);
    }
    Ok(response)
}

/// Read one of the lists of an import run's report in pages, with the run and what the report comes to.
#[utoipa::path(
    get, path = "/api/import/{runId}/report/entries", operation_id = "listImportReport", tag = "Import",
    params(("runId" = String, Path, format = "uuid", description = "The run."), AskedReport),
    responses((status = 200, description = "The entries, in the report's order.", body = ImportReport)),
)]
pub(super) async fn entries(
    State(authenticator): State<Arc<Authenticator>>,
    headers: HeaderMap,
    person: Person,
    PathId(id): PathId<SyncRunId>,
    Query(asked): Query<AskedReport>,
) -> Answer {
    let (person, _) = WorkspaceAccess::of(&person, &authenticator, &headers).find(id).await?;
    Ok(JsonBody(imports::entries(&person, id, asked).await?).into_response())
}

/// Start an import run, or one that failed or was cancelled where it stopped. Takes the permission to write.
#[utoipa::path(
    post, path = "/api/import/{runId}/start", operation_id = "startImport", tag = "Import",
    params(("runId" = String, Path, format = "uuid", description = "The run.")),
    responses(
        (status = 202, description = "The run, which is queued.", body = ImportRun),
        (status = 409, description = "It cannot be started now.", body = crate::error::ErrorBody),
    ),
)]
pub(super) async fn start(
    State(authenticator): State<Arc<Authenticator>>,
    headers: HeaderMap,
    person: Person,
    PathId(id): PathId<SyncRunId>,
) -> Answer {
    let (person, _) = WorkspaceAccess::of(&person, &authenticator, &headers).find(id).await?;
    let run = imports::start(&person, id).await?;
    Ok((StatusCode::ACCEPTED, JsonBody(run)).into_response())
}

/// Cancel an import run that is not over. What was imported so far stays. Takes the permission to write.
#[utoipa::path(
    post, path = "/api/import/{runId}/cancel", operation_id = "cancelImport", tag = "Import",
    params(("runId" = String, Path, format = "uuid", description = "The run.")),
    responses(
        (status = 202, description = "The run, which ends within moments.", body = ImportRun),
        (status = 409, description = "It is over.", body = crate::error::ErrorBody),
    ),
)]
pub(super) async fn cancel(
    State(authenticator): State<Arc<Authenticator>>,
    headers: HeaderMap,
    person: Person,
    PathId(id): PathId<SyncRunId>,
) -> Answer {
    let (person, _) = WorkspaceAccess::of(&person, &authenticator, &headers).find(id).await?;
    let run = imports::cancel(&person, id).await?;
    Ok((StatusCode::ACCEPTED, JsonBody(run)).into_response())
}

/// Roll an import run back, within 7 days; takes the permission to delete. What was changed since stays.
#[utoipa::path(
    post, path = "/api/import/{runId}/rollback", operation_id = "rollBackImport", tag = "Import",
    params(("runId" = String, Path, format = "uuid", description = "The run.")),
    responses(
        (status = 202, description = "The run, which is running while it goes back.", body = ImportRun),
        (status = 409, description = "It cannot be rolled back.", body = crate::error::ErrorBody),
    ),
)]
pub(super) async fn roll_back(
    State(authenticator): State<Arc<Authenticator>>,
    headers: HeaderMap,
    person: Person,
    PathId(id): PathId<SyncRunId>,
) -> Answer {
    let (person, _) = WorkspaceAccess::of(&person, &authenticator, &headers).find(id).await?;
    let run = imports::roll_back(&person, id).await?;
    Ok((StatusCode::ACCEPTED, JsonBody(run)).into_response())
}
