//! Ingested documents (spec 4.6).

mod form;

use std::sync::Arc;

use axum::extract::{FromRequest as _, OriginalUri, Request, State};
use axum::response::IntoResponse as _;
use cairn_proto::domain::IngestStatus;
use cairn_proto::ids::DocumentId;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::{Answer, conditional, done, paging, written};
use crate::answers::{IngestedDocument, Links};
use crate::app::App;
use crate::extract::{Json, PathId, Query};
use crate::json_body::JsonBody;
use crate::operations::ingest::{self, IngestDocument, IngestForm};
use crate::operations::{Context, Paging};
use crate::schema::inputs;

inputs!(ListIngested);

const NO_SNIFF: (HeaderName, HeaderValue) =
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));

/// Which documents to list.
#[derive(Debug, Deserialize, ToSchema, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(super) struct ListIngested {
    /// Only documents that are so far.
    status: Option<IngestStatus>,
    /// Only documents whose title holds this, whatever the case of its letters.
    #[schema(max_length = 255)]
    #[param(max_length = 255)]
    title: Option<String>,
    /// How many at once: 1 to 1000, 50 when left out.
    #[schema(minimum = 1, maximum = 1000)]
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// Where to go on: from the `Link` header of the page before.
    cursor: Option<String>,
}

/// Ingest a document: a text as JSON, or a file as a form. Takes a workspace-wide token.
///
/// What is answered is kept; its text is searched as soon as `status` is `indexed`.
#[utoipa::path(
    post, path = "/api/v1/ingest", operation_id = "ingestDocument", tag = "Ingest",
    request_body(content((IngestDocument = "application/json"), (IngestForm = "multipart/form-data"))),
    responses(
        (status = 202, description = "It is new.", body = IngestedDocument),
        (status = 200, description = "The same content was sent under this key before.", body = IngestedDocument),
        (status = 409, description = "Other content was sent under this key.", body = crate::error::ErrorBody),
    ),
)]
pub(super) async fn create(
    State(app): State<App>,
    context: Context,
    headers: HeaderMap,
    request: Request,
) -> Answer {
    let (taken, is_replay) = match form::boundary(&headers) {
        Some(boundary) => form::receive(&context, &boundary?, request.into_body()).await?,
        None => {
            let Json(input) = Json::<IngestDocument>::from_request(request, &app).await?;
            ingest::text(&context, input).await?
        }
    };
    Ok(written(if is_replay { StatusCode::OK } else { StatusCode::ACCEPTED }, taken))
}

/// List ingested documents, the newest first, without their text. Takes a workspace-wide token.
#[utoipa::path(
    get, path = "/api/v1/ingest", operation_id = "listIngested", tag = "Ingest", params(ListIngested),
    responses((status = 200, description = "The documents.", body = Vec<IngestedDocument>)),
)]
pub(super) async fn list(
    State(links): State<Arc<Links>>,
    OriginalUri(uri): OriginalUri,
    context: Context,
    Query(query): Query<ListIngested>,
) -> Answer {
    let page = Paging { limit: query.limit, cursor: query.cursor };
    Ok(paging::respond(ingest::list(&context, query.status, query.title, page).await?, &uri, &links))
}

/// Read how far an ingested document is. Takes a workspace-wide token.
#[utoipa::path(
    get, path = "/api/v1/ingest/{id}", operation_id = "getIngested", tag = "Ingest",
    params(("id" = String, Path, format = "uuid", description = "The document.")),
    responses((status = 200, description = "The document.", body = IngestedDocument)),
)]
pub(super) async fn get(context: Context, PathId(id): PathId<DocumentId>) -> Answer {
    Ok(JsonBody(ingest::get(&context, id).await?).into_response())
}

/// Download the retained text of an ingested document as it is. Takes a workspace-wide token.
#[utoipa::path(
    get, path = "/api/v1/ingest/{id}/content", operation_id = "getIngestedContent", tag = "Ingest",
    params(("id" = String, Path, format = "uuid", description = "The document.")),
    responses(
        (status = 200, description = "The text, in which the lines of citations count.", content(
            (String = "text/markdown"), (String = "application/json"), (String = "text/yaml"), (String = "text/plain"),
        )),
        (status = 404, description = "It has no text, or not yet.", body = crate::error::ErrorBody),
    ),
)]
pub(super) async fn content(context: Context, PathId(id): PathId<DocumentId>, headers: HeaderMap) -> Answer {
    let content = ingest::content(&context, id).await?;
    let tag = conditional::etag(&content.content_hash);
    let mut response = if conditional::is_current(&headers, &content.content_hash) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        let kind = HeaderValue::from_str(&format!("{}; charset=utf-8", content.mime_type));
        let kind = kind.unwrap_or(HeaderValue::from_static("text/plain; charset=utf-8"));
        ([(header::CONTENT_TYPE, kind), NO_SNIFF], content.text).into_response()
    };
    if let Some(tag) = tag {
        response.headers_mut().insert(header::ETAG, tag);
    }
    Ok(response)
}

/// Remove an ingested document for good. Takes a workspace-wide token.
#[utoipa::path(
    delete, path = "/api/v1/ingest/{id}", operation_id = "deleteIngested", tag = "Ingest",
    params(("id" = String, Path, format = "uuid", description = "The document.")),
    responses((status = 204, description = "It is gone, and its key is free again.")),
)]
pub(super) async fn delete(context: Context, PathId(id): PathId<DocumentId>) -> Answer {
    Ok(done(&ingest::delete(&context, id).await?))
}
