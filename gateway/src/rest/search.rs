//! Retrieval (spec 4.4).

use axum::response::IntoResponse as _;
use cairn_chassis::status::Problem;
use http::HeaderMap;

use super::{Answer, text_of};
use crate::answers::SearchAnswer;
use crate::change;
use crate::extract::Json;
use crate::json_body::JsonBody;
use crate::operations::Context;
use crate::operations::search::{self, Freshness, SearchContext};

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
    responses((status = 200, description = "The evidence, best first.", body = SearchAnswer)),
)]
pub(super) async fn search_context(
    context: Context,
    headers: HeaderMap,
    Json(input): Json<SearchContext>,
) -> Answer {
    let freshness = freshness(&headers)?;
    Ok(JsonBody(search::search(&context, input, freshness).await?).into_response())
}

/// Which write an answer must have seen.
pub(super) fn freshness(headers: &HeaderMap) -> Result<Freshness, Problem> {
    let change = text_of(headers, change::HEADER.as_str());
    Freshness::read(change, text_of(headers, WAIT), ("X-Cairn-Change", "X-Cairn-Wait-Ms"))
}
