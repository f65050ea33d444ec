//! Connected sources: list them and their documents, query one, fetch a document.

use bytes::Bytes;
use cairn_chassis::status::Problem;
use cairn_proto::domain::SourceMode;
use cairn_proto::ids::{DocumentId, SourceId, SourceRunId};
use cairn_proto::ingest::v1 as proto;
use cairn_proto::retrieval::v1 as retrieval;
use prost_types::FieldMask;
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::person::Person;
use super::{Context, Page, Paging, answered, null_or_value, present};
use crate::answers::{
    CheckedSource, ConnectedSource, RetainedDocument, Source, SourceAnswer, SourceContent, SourceDocument,
    SourceRun,
};
use crate::schema::inputs;

inputs!(SourceQuery, ConnectSource, CheckSource, UpdateSource, SyncSource);

/// Provider-specific fields, interpreted by the service.
type Fields = Map<String, Value>;

/// What to connect to.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ConnectSource {
    /// What people call it; it is a folder below `/sources` in scripts, too.
    #[schema(min_length = 1, max_length = 100)]
    name: String,
    /// Such as `folder`, `git`, `web`, `s3`, `github` or `notion`; an unknown one is refused with the list.
    provider: String,
    /// `indexed` keeps texts, `catalog` titles and places, `live` nothing. What is usual for the provider when left out.
    mode: Option<SourceMode>,
    /// Where and what to read, in the provider's own fields.
    #[schema(value_type = Object)]
    settings: Fields,
    /// What opens it, in the provider's own fields. No answer ever has it.
    #[schema(value_type = Option<Object>)]
    credentials: Option<Fields>,
    /// How often it is read: minutes, hours or days, at least `5m`.
    #[schema(min_length = 2, max_length = 10, examples("1h"))]
    every: Option<String>,
    /// How many requests live calls may make in a day (UTC): 500 when left out.
    #[schema(maximum = 1_000_000)]
    daily_budget: Option<u32>,
    /// Whether nothing is read before somebody resumes it.
    #[serde(default)]
    #[schema(value_type = bool, required = false)]
    paused: Option<bool>,
}

/// What to ask a provider about; nothing is stored.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CheckSource {
    #[schema(max_length = 100)]
    name: Option<String>,
    provider: String,
    mode: Option<SourceMode>,
    #[schema(value_type = Object)]
    settings: Fields,
    #[schema(value_type = Option<Object>)]
    credentials: Option<Fields>,
    #[schema(min_length = 2, max_length = 10)]
    every: Option<String>,
    #[schema(maximum = 1_000_000)]
    daily_budget: Option<u32>,
    paused: Option<bool>,
}

/// Changes of a source: fields that are left out stay as they are, null returns to what is usual.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(min_properties = 1)]
pub(crate) struct UpdateSource {
    #[serde(default)]
    #[schema(value_type = String, required = false, min_length = 1, max_length = 100)]
    name: Option<String>,
    /// A source keeps its provider.
    #[serde(default)]
    #[schema(value_type = String, required = false)]
    provider: Option<String>,
    #[serde(default, deserialize_with = "null_or_value")]
    #[schema(value_type = Option<SourceMode>)]
    mode: Option<Option<SourceMode>>,
    /// Replaces all settings; everything is read anew.
    #[serde(default)]
    #[schema(value_type = Object, required = false)]
    settings: Option<Fields>,
    /// Replaces the credentials; null takes them away.
    #[serde(default, deserialize_with = "null_or_value")]
    #[schema(value_type = Option<Object>)]
    credentials: Option<Option<Fields>>,
    #[serde(default, deserialize_with = "null_or_value")]
    #[schema(value_type = Option<String>, min_length = 2, max_length = 10)]
    every: Option<Option<String>>,
    #[serde(default, deserialize_with = "null_or_value")]
    #[schema(value_type = Option<u32>, maximum = 1_000_000)]
    daily_budget: Option<Option<u32>>,
    /// True ends the run that is under way and queues no other; false queues one.
    #[serde(default)]
    #[schema(value_type = bool, required = false)]
    paused: Option<bool>,
}

// Settings and credentials may be secrets.
cairn_chassis::debug_fields!(ConnectSource { name, provider });
cairn_chassis::debug_fields!(CheckSource { name, provider });
cairn_chassis::debug_fields!(UpdateSource { name });

/// How to run.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SyncSource {
    /// Whether everything is read, and not what has changed alone.
    #[serde(default)]
    #[schema(value_type = bool, required = false)]
    full: Option<bool>,
}

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

/// All on one page: nobody connects more than fit.
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
        ..proto::ListSourceDocumentsRequest::default()
    });
    let listed = answered(context.upstreams.sources().list_source_documents(request).await)?;
    Ok(Page::read(listed.documents, listed.next_page_token, listed.total_size))
}

pub(crate) async fn query(
    context: &Context,
    source_id: String,
    input: SourceQuery,
) -> Result<SourceAnswer, Problem> {
    let request = context.call.request(retrieval::QuerySourceRequest {
        source_id,
        query: input.query,
        limit: input.limit.unwrap_or_default(),
    });
    let answer = answered(context.upstreams.search().query_source(request).await)?;
    Ok(SourceAnswer::read(answer, &context.links))
}

pub(crate) async fn fetch(
    context: &Context,
    source_id: String,
    external_id: String,
) -> Result<SourceContent, Problem> {
    let message = proto::FetchSourceDocumentRequest { source_id: source_id.clone(), external_id };
    let request = context.call.request(message);
    let document = answered(context.upstreams.sources().fetch_source_document(request).await)?;
    Ok(SourceContent::read(document, &source_id, &context.links))
}

/// The sources of a workspace with their connections, by name.
pub(crate) async fn list_connected(person: &Person) -> Result<Vec<ConnectedSource>, Problem> {
    let request = person.call.request(proto::ListConnectedSourcesRequest {});
    let listed = answered(person.upstreams.sources().list_connected_sources(request).await)?;
    listed.sources.into_iter().map(TryInto::try_into).collect()
}

pub(crate) async fn get(person: &Person, id: SourceId) -> Result<ConnectedSource, Problem> {
    let request = person.call.request(proto::GetSourceRequest { source_id: id.to_string() });
    let found = answered(person.upstreams.sources().get_source(request).await)?;
    present(found.source)?.try_into()
}

/// Connects a source and queues its first run.
pub(crate) async fn connect(person: &Person, input: ConnectSource) -> Result<ConnectedSource, Problem> {
    let source = proto::SourceDraft {
        name: input.name,
        provider: input.provider,
        mode: number(input.mode),
        settings: json(input.settings),
        credentials: input.credentials.map(json).unwrap_or_default(),
        every: input.every,
        daily_budget: input.daily_budget,
        paused: input.paused.unwrap_or_default(),
    };
    let request = person.call.request(proto::ConnectSourceRequest { source: Some(source) });
    let connected = answered(person.upstreams.sources().connect_source(request).await)?;
    present(connected.source)?.try_into()
}

/// Validates settings and credentials against the provider.
pub(crate) async fn check(person: &Person, input: CheckSource) -> Result<CheckedSource, Problem> {
    let source = proto::SourceDraft {
        name: input.name.unwrap_or_default(),
        provider: input.provider,
        mode: number(input.mode),
        settings: json(input.settings),
        credentials: input.credentials.map(json).unwrap_or_default(),
        every: input.every,
        daily_budget: input.daily_budget,
        paused: input.paused.unwrap_or_default(),
    };
    let request = person.call.request(proto::CheckSourceRequest { source: Some(source) });
    Ok(answered(person.upstreams.sources().check_source(request).await)?.into())
}

pub(crate) async fn update(
    person: &Person,
    id: SourceId,
    input: UpdateSource,
) -> Result<ConnectedSource, Problem> {
    let given = [
        ("name", input.name.is_some()),
        ("provider", input.provider.is_some()),
        ("mode", input.mode.is_some()),
        ("settings", input.settings.is_some()),
        ("credentials", input.credentials.is_some()),
        ("every", input.every.is_some()),
        ("daily_budget", input.daily_budget.is_some()),
        ("paused", input.paused.is_some()),
    ];
    let paths =
        given.into_iter().filter(|(_, is_given)| *is_given).map(|(field, _)| field.to_owned()).collect();
    let source = proto::SourceDraft {
        name: input.name.unwrap_or_default(),
        provider: input.provider.unwrap_or_default(),
        mode: number(input.mode.flatten()),
        settings: input.settings.map(json).unwrap_or_default(),
        credentials: input.credentials.flatten().map(json).unwrap_or_default(),
        every: input.every.flatten(),
        daily_budget: input.daily_budget.flatten(),
        paused: input.paused.unwrap_or_default(),
    };
    let request = person.call.request(proto::UpdateSourceRequest {
        source_id: id.to_string(),
        source: Some(source),
        update_mask: Some(FieldMask { paths }),
    });
    let updated = answered(person.upstreams.sources().update_source(request).await)?;
    present(updated.source)?.try_into()
}

/// Removes a source and everything kept of it.
pub(crate) async fn disconnect(person: &Person, id: SourceId) -> Result<(), Problem> {
    let request = person.call.request(proto::DisconnectSourceRequest { source_id: id.to_string() });
    answered(person.upstreams.sources().disconnect_source(request).await).map(drop)
}

/// Queues a run.
pub(crate) async fn sync(person: &Person, id: SourceId, input: SyncSource) -> Result<SourceRun, Problem> {
    let message =
        proto::SyncSourceRequest { source_id: id.to_string(), full: input.full.unwrap_or_default() };
    let queued = answered(person.upstreams.sources().sync_source(person.call.request(message)).await)?;
    present(queued.run)?.try_into()
}

/// The runs of a source, newest first.
pub(crate) async fn runs(person: &Person, id: SourceId, page: Paging) -> Result<Page<SourceRun>, Problem> {
    let request = person.call.request(proto::ListSourceRunsRequest {
        source_id: id.to_string(),
        page_size: page.limit.unwrap_or_default(),
        page_token: page.cursor.unwrap_or_default(),
    });
    let listed = answered(person.upstreams.sources().list_source_runs(request).await)?;
    Page::try_read(listed.runs, listed.next_page_token, listed.total_size)
}

pub(crate) async fn run(person: &Person, id: SourceId, run: SourceRunId) -> Result<SourceRun, Problem> {
    let message = proto::GetSourceRunRequest { source_id: id.to_string(), run_id: run.to_string() };
    let found = answered(person.upstreams.sources().get_source_run(person.call.request(message)).await)?;
    present(found.run)?.try_into()
}

/// Cancels a run in progress.
pub(crate) async fn cancel(person: &Person, id: SourceId, run: SourceRunId) -> Result<SourceRun, Problem> {
    let message = proto::CancelSourceRunRequest { source_id: id.to_string(), run_id: run.to_string() };
    let request = person.call.request(message);
    let cancelled = answered(person.upstreams.sources().cancel_source_run(request).await)?;
    present(cancelled.run)?.try_into()
}

/// Filters of the documents of sources.
#[derive(Debug, Default)]
pub(crate) struct DocumentFilter {
    /// `None`: of all sources.
    pub(crate) source: Option<SourceId>,
    /// A value of `indexStatus`; `None`: any.
    pub(crate) status: Option<String>,
    /// A part of the title.
    pub(crate) title: Option<String>,
}

/// Documents of one source, or of all, including those that could not be read.
pub(crate) async fn documents_of(
    person: &Person,
    filter: DocumentFilter,
    page: Paging,
) -> Result<Page<SourceDocument>, Problem> {
    let request = person.call.request(proto::ListSourceDocumentsRequest {
        source_id: filter.source.map(|id| id.to_string()),
        page_size: page.limit.unwrap_or_default(),
        page_token: page.cursor.unwrap_or_default(),
        status: filter.status,
        title: filter.title.unwrap_or_default(),
    });
    let listed = answered(person.upstreams.sources().list_source_documents(request).await)?;
    Ok(Page::read(listed.documents, listed.next_page_token, listed.total_size))
}

/// A document with its retained text.
pub(crate) async fn document(person: &Person, id: DocumentId) -> Result<RetainedDocument, Problem> {
    let request = person.call.request(proto::GetSourceDocumentRequest { document_id: id.to_string() });
    answered(person.upstreams.sources().get_source_document(request).await)?.try_into()
}

/// Retries a failed document at once.
pub(crate) async fn retry(person: &Person, id: DocumentId) -> Result<SourceDocument, Problem> {
    let request = person.call.request(proto::RetrySourceDocumentRequest { document_id: id.to_string() });
    let tried = answered(person.upstreams.sources().retry_source_document(request).await)?;
    Ok(present(tried.document)?.into())
}

fn number(mode: Option<SourceMode>) -> i32 {
    mode.map(SourceMode::number).unwrap_or_default()
}

fn json(fields: Fields) -> Bytes {
    Value::Object(fields).to_string().into()
}
