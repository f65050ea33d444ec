//! Connected sources: list them and their documents, query one, fetch a document.

use cairn_chassis::status::Problem;
use cairn_proto::ingest::v1 as proto;
use serde::Deserialize;
use utoipa::ToSchema;

use super::{Context, Page, answered};
use crate::answers::{Source, SourceAnswer, SourceContent, SourceDocument};
use crate::schema::inputs;

inputs!(SourceQuery);

/// What to look for in one source.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SourceQuery {
    /// A question or keywords.
    #[schema(min_length = 1, max_length = 10000)]
    pub(crate) query: String,
    /// How many results at most: 1 to 20, 5 when left out.
    #[schema(minimum = 1, maximum = 20, default = 5)]
    pub(crate) limit: Option<u32>,
}

/// All of them on one page: nobody connects as many as a page holds.
pub(crate) async fn list(context: &Context) -> Result<Page<Source>, Problem> {
    let request = context.call.request(proto::ListSourcesRequest {});
    let listed = answered(context.upstreams.sources().list_sources(request).await)?;
    let total = u64::try_from(listed.sources.len()).unwrap_or(u64::MAX);
    Ok(Page::read(listed.sources, String::new(), total))
}

/// Documents of one source, or of all.
pub(crate) async fn documents(
    context: &Context,
    source_id: Option<String>,
    limit: Option<u32>,
    cursor: Option<String>,
) -> Result<Page<SourceDocument>, Problem> {
    let request = context.call.request(proto::ListSourceDocumentsRequest {
        source_id,
        page_size: limit.unwrap_or_default(),
        page_token: cursor.unwrap_or_default(),
        status: None,
    });
    let listed = answered(context.upstreams.sources().list_source_documents(request).await)?;
    Ok(Page::read(listed.documents, listed.next_page_token, listed.total_size))
}

pub(crate) async fn query(
    context: &Context,
    source_id: String,
    input: SourceQuery,
) -> Result<SourceAnswer, Problem> {
    let request = context.call.request(proto::QuerySourceRequest {
        source_id: source_id.clone(),
        query: input.query,
        limit: input.limit.unwrap_or_default(),
    });
    let answer = answered(context.upstreams.sources().query_source(request).await)?;
    Ok(SourceAnswer::read(answer, &source_id))
}

pub(crate) async fn fetch(
    context: &Context,
    source_id: String,
    external_id: String,
) -> Result<SourceContent, Problem> {
    let message = proto::FetchSourceDocumentRequest { source_id: source_id.clone(), external_id };
    let request = context.call.request(message);
    let document = answered(context.upstreams.sources().fetch_source_document(request).await)?;
    Ok(SourceContent::read(document, &source_id))
}
