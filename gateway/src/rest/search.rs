//! Retrieval (spec 4.4).

use axum::Extension;
use axum::response::IntoResponse as _;
use cairn_chassis::status::Problem;
use cairn_proto::domain::DocumentKind;
use cairn_proto::ids::DocumentId;
use http::HeaderMap;

use super::{Answer, text_of};
use crate::answers::{Absence, DocumentStatus, SearchAnswer};
use crate::change;
use crate::events::Results;
use crate::extract::{Json, PathIds};
use crate::json_body::JsonBody;
use crate::operations::absence::{self, ExplainAbsence};
use crate::operations::search::{self, Freshness, SearchContext};
use crate::operations::{Context, document_status};

const WAIT: &str = "x-cairn-wait-ms";

/// Search the workspace: ranked pieces of documents, each with a citation.
#[utoipa::path(
    post, path = "/api/v1/search_context", operation_id = "searchContext", tag = "Retrieval",
    request_body = SearchContext,
    params(
        ("X-Cairn-Change" = Option<String>, Header,
            description = "The value that a write answered: the search sees at least that write."),
        ("X-Cairn-Wait-Ms" = Option<u32>, Header, minimum = 0, maximum = 10000,
            description = "How long to wait for that write at most; 2000 when left out. After it the answer comes \
                           with the coverage note `index_behind`."),
    ),
    responses(
        (status = 200, description = "The evidence, best first.", body = SearchAnswer),
        (status = 410, description = "`asOf` is longer ago, or more changes ago, than it is known how things stood.", body = crate::error::ErrorBody),
    ),
)]
pub(super) async fn search_context(
    context: Context,
    headers: HeaderMap,
    Json(input): Json<SearchContext>,
) -> Answer {
    let freshness = freshness(&headers)?;
    let answer = search::search(&context, input, freshness).await?;
    let found = Results(answer.results.len());
    Ok((Extension(found), JsonBody(answer)).into_response())
}

/// Learn why a search does not return a document: what the search does to it, step by step.
#[utoipa::path(
    post, path = "/api/v1/search_context/absence", operation_id = "explainAbsence", tag = "Retrieval",
    request_body = ExplainAbsence,
    params(
        ("X-Cairn-Change" = Option<String>, Header,
            description = "The value that a write answered: the answer sees at least that write."),
        ("X-Cairn-Wait-Ms" = Option<u32>, Header, minimum = 0, maximum = 10000,
            description = "How long to wait for that write at most; 2000 when left out."),
    ),
    responses((status = 200, description = "The checks, in their order.", body = Absence)),
)]
pub(super) async fn explain_absence(
    context: Context,
    headers: HeaderMap,
    Json(input): Json<ExplainAbsence>,
) -> Answer {
    let freshness = freshness(&headers)?;
    Ok(JsonBody(absence::explain(&context, input, freshness).await?).into_response())
}

/// Learn whether a search finds a document as it is now.
#[utoipa::path(
    get, path = "/api/v1/index/{kind}/{id}", operation_id = "getDocumentStatus", tag = "Retrieval",
    params(
        ("kind" = DocumentKind, Path, description = "What the document is."),
        ("id" = String, Path, format = "uuid", description = "The document."),
        ("X-Cairn-Change" = Option<String>, Header,
            description = "The value that a write answered: the answer waits until the index has seen it."),
        ("X-Cairn-Wait-Ms" = Option<u32>, Header, minimum = 0, maximum = 10000,
            description = "How long to wait for that write at most; 2000 when left out."),
    ),
    responses((status = 200, description = "Its state in the index.", body = DocumentStatus)),
)]
pub(super) async fn document_status(
    context: Context,
    PathIds(kind, id): PathIds<DocumentKind, DocumentId>,
    headers: HeaderMap,
) -> Answer {
    let freshness = freshness(&headers)?;
    Ok(JsonBody(document_status::get(&context, kind, id, freshness).await?).into_response())
}

/// The write that a search must have seen.
pub(crate) fn freshness(headers: &HeaderMap) -> Result<Freshness, Problem> {
    let change = text_of(headers, change::HEADER.as_str());
    Freshness::read(change, text_of(headers, WAIT), ("X-Cairn-Change", "X-Cairn-Wait-Ms"))
}
