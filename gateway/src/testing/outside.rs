//! A fake svc-ingest with documents and sources in each state. Their names, their errors and the messages of
//! providers are hostile.

use cairn_chassis::status::{Problem, Reason, Violation};
use cairn_proto::document::v1::Format;
use cairn_proto::feed::v1::Kind;
use cairn_proto::ingest::v1 as proto;
use cairn_proto::ingest::v1::ingest_service_server::IngestService;
use cairn_proto::ingest::v1::location_service_server::LocationService;
use cairn_proto::ingest::v1::source_service_server::SourceService;
use prost_types::Timestamp;
use tonic::{Request, Response, Status, Streaming};

use super::WORKSPACE;
use super::console::HOSTILE;

/// An ingested document that is indexed.
pub(crate) const SENT: &str = "0199c0de-0000-7000-8000-0000000000d1";
/// One that failed.
pub(crate) const UNREADABLE: &str = "0199c0de-0000-7000-8000-0000000000d2";
/// A document of a source whose text is retained.
pub(crate) const RETAINED: &str = "0199c0de-0000-7000-8000-0000000000d3";
/// One with only its title retained.
pub(crate) const CATALOGUED: &str = "0199c0de-0000-7000-8000-0000000000d4";
/// One that could not be read.
pub(crate) const UNREAD: &str = "0199c0de-0000-7000-8000-0000000000d5";
/// A source that is being read.
pub(crate) const SOURCE: &str = "0199c0de-0000-7000-8000-0000000000e1";
/// One whose credentials have expired, and which is paused.
pub(crate) const ENDED: &str = "0199c0de-0000-7000-8000-0000000000e2";
/// One that is queried live.
pub(crate) const LIVE: &str = "0199c0de-0000-7000-8000-0000000000e3";
/// A run in progress.
pub(crate) const RUN: &str = "0199c0de-0000-7000-8000-0000000000a7";
/// The last completed one.
pub(crate) const PAST: &str = "0199c0de-0000-7000-8000-0000000000a6";
/// The hash of every document's text.
pub(crate) const HASH: &str = "blake3:0d0d";

const TEXT: &str = "# Plan\n\none\n\n## More\n\n<script>alert(1)</script>\n";
const AT: Option<Timestamp> = Some(Timestamp { seconds: 1_800_000_000, nanos: 0 });

type Answered<T> = Result<Response<T>, Status>;

pub(super) struct Outside;

fn nothing() -> Status {
    Problem::not_found("there is no such thing").into()
}

#[tonic::async_trait]
impl LocationService for Outside {
    async fn locate_document(
        &self,
        request: Request<proto::LocateDocumentRequest>,
    ) -> Answered<proto::LocateDocumentResponse> {
        let asked = request.into_inner();
        let kind = match asked.document_id.as_str() {
            SENT | UNREADABLE => Kind::Ingested,
            RETAINED | CATALOGUED | UNREAD => Kind::SourceDocument,
            _ => return Err(nothing()),
        };
        Ok(Response::new(proto::LocateDocumentResponse { workspace_id: WORKSPACE.into(), kind: kind.into() }))
    }
}

fn sent(id: &str) -> proto::IngestedDocument {
    let is_read = id == SENT;
    proto::IngestedDocument {
        id: id.into(),
        status: if is_read { proto::IngestStatus::Indexed } else { proto::IngestStatus::Failed }.into(),
        idempotency_key: HOSTILE.into(),
        title: HOSTILE.into(),
        content_hash: is_read.then(|| HASH.into()),
        created_at: AT,
        updated_at: AT,
        chunk_count: is_read.then_some(1),
        indexed_at: AT.filter(|_| is_read),
        error: (!is_read).then(|| HOSTILE.into()),
        url: Some(if is_read { "https://wiki.example/plan" } else { "javascript:alert(1)" }.into()),
        metadata: Some(serde_json::json!({HOSTILE: HOSTILE, "n": [1]}).to_string()),
        path: "/sources/ingested/Plan.md".into(),
        mime_type: "text/markdown".into(),
        size_bytes: TEXT.len() as u64,
        ..Default::default()
    }
}

#[tonic::async_trait]
impl IngestService for Outside {
    async fn ingest_document(
        &self,
        request: Request<proto::IngestDocumentRequest>,
    ) -> Answered<proto::IngestDocumentResponse> {
        if request.get_ref().content.is_empty() {
            let violation = Violation::new("content", "required", "may not be empty");
            return Err(Problem::validation(vec![violation]).into());
        }
        Ok(Response::new(proto::IngestDocumentResponse { document: Some(sent(SENT)), ..Default::default() }))
    }

    async fn ingest_file(
        &self,
        _: Request<Streaming<proto::IngestFileRequest>>,
    ) -> Answered<proto::IngestFileResponse> {
        Err(Status::unimplemented(""))
    }

    async fn get_ingested_document(
        &self,
        request: Request<proto::GetIngestedDocumentRequest>,
    ) -> Answered<proto::GetIngestedDocumentResponse> {
        let id = request.into_inner().document_id;
        Ok(Response::new(proto::GetIngestedDocumentResponse { document: Some(sent(&id)) }))
    }

    async fn list_ingested_documents(
        &self,
        request: Request<proto::ListIngestedDocumentsRequest>,
    ) -> Answered<proto::ListIngestedDocumentsResponse> {
        let documents = if request.get_ref().title == "zqnothing" {
            Vec::new()
        } else {
            vec![sent(SENT), sent(UNREADABLE)]
        };
        let total_size = documents.len() as u64;
        let next_page_token = if request.get_ref().page_token.is_empty() { "next" } else { "" }.into();
        Ok(Response::new(proto::ListIngestedDocumentsResponse { documents, next_page_token, total_size }))
    }

    async fn get_ingested_content(
        &self,
        _: Request<proto::GetIngestedContentRequest>,
    ) -> Answered<proto::GetIngestedContentResponse> {
        Ok(Response::new(proto::GetIngestedContentResponse {
            content: TEXT.into(),
            mime_type: "text/markdown".into(),
            content_hash: HASH.into(),
        }))
    }

    async fn delete_ingested_document(
        &self,
        _: Request<proto::DeleteIngestedDocumentRequest>,
    ) -> Answered<proto::DeleteIngestedDocumentResponse> {
        Ok(Response::new(proto::DeleteIngestedDocumentResponse { position: 1 }))
    }

    async fn get_usage(&self, _: Request<proto::GetUsageRequest>) -> Answered<proto::GetUsageResponse> {
        Ok(Response::new(proto::GetUsageResponse {
            documents: 9,
            documents_limit: Some(10),
            storage_bytes: 1_000,
        }))
    }
}

fn source(id: &str) -> proto::Source {
    let (mode, status) = match id {
        LIVE => (proto::SourceMode::Live, "ready"),
        ENDED => (proto::SourceMode::Catalog, "needs_credentials"),
        _ => (proto::SourceMode::Indexed, "syncing"),
    };
    proto::Source {
        id: id.into(),
        name: HOSTILE.into(),
        provider: "github".into(),
        mode: mode.into(),
        status: status.into(),
        document_count: 3,
        last_synced_at: AT.filter(|_| id != LIVE),
        error: (id == ENDED).then(|| HOSTILE.into()),
    }
}

fn run(id: &str) -> proto::SourceRun {
    let is_over = id == PAST;
    let status =
        if is_over { proto::SourceRunStatus::CompletedWithWarnings } else { proto::SourceRunStatus::Waiting };
    proto::SourceRun {
        id: id.into(),
        kind: proto::SourceRunKind::Full.into(),
        status: status.into(),
        complete: is_over,
        counters: Some(proto::SourceRunCounters { listed: 4, fetched: 3, failed: 1, ..Default::default() }),
        warnings: vec![proto::SourceNote { code: "x".into(), message: HOSTILE.into() }],
        error: is_over.then(|| HOSTILE.into()),
        started_at: AT,
        finished_at: AT.filter(|_| is_over),
        waiting_until: AT.filter(|_| !is_over),
    }
}

fn connected(id: &str) -> proto::ConnectedSource {
    proto::ConnectedSource {
        source: Some(source(id)),
        settings: serde_json::json!({"owner": HOSTILE, "repo": "x", "content": ["issues"]})
            .to_string()
            .into(),
        account: Some(HOSTILE.into()),
        credential_hint: Some("wxyz".into()),
        every: "15m".into(),
        next_sync_at: AT,
        paused: id == ENDED,
        budget: Some(proto::SourceBudget { limit: 500, used: 450, remaining: 50 }),
        run: (id == SOURCE).then(|| run(RUN)),
        waiting_until: AT.filter(|_| id == SOURCE),
    }
}

/// Rejects a draft with an empty name.
fn checked(draft: Option<proto::SourceDraft>) -> Result<proto::SourceDraft, Status> {
    let draft = draft.unwrap_or_default();
    if draft.provider != "github" && draft.provider != "web" {
        let violation = Violation::new("provider", "invalid_value", "must be one of: github, web");
        return Err(Problem::validation(vec![violation]).into());
    }
    let settings: serde_json::Value = serde_json::from_slice(&draft.settings).unwrap_or_default();
    if draft.provider == "github" && settings.get("owner").is_none() {
        let violation = Violation::new("settings.owner", "required", "say whose");
        return Err(Problem::validation(vec![violation]).into());
    }
    Ok(draft)
}

fn document(id: &str) -> proto::SourceDocument {
    let index_status = match id {
        RETAINED => "indexed",
        CATALOGUED => "catalog",
        _ => "failed",
    };
    proto::SourceDocument {
        id: id.into(),
        source_id: SOURCE.into(),
        title: HOSTILE.into(),
        external_id: HOSTILE.into(),
        mime_type: "text/markdown".into(),
        index_status: index_status.into(),
        last_synced_at: AT,
        error: (id == UNREAD).then(|| HOSTILE.into()),
    }
}

#[tonic::async_trait]
impl SourceService for Outside {
    async fn list_sources(
        &self,
        _: Request<proto::ListSourcesRequest>,
    ) -> Answered<proto::ListSourcesResponse> {
        let sources = [SOURCE, ENDED, LIVE].map(source).to_vec();
        Ok(Response::new(proto::ListSourcesResponse { sources }))
    }

    async fn count_documents(
        &self,
        _: Request<proto::CountDocumentsRequest>,
    ) -> Answered<proto::CountDocumentsResponse> {
        let counts =
            |failed| proto::DocumentCounts { pending: 2, indexing: 3, indexed: 1_204, catalog: 0, failed };
        Ok(Response::new(proto::CountDocumentsResponse {
            ingested: Some(counts(0)),
            of_sources: Some(counts(7)),
        }))
    }

    async fn list_source_documents(
        &self,
        request: Request<proto::ListSourceDocumentsRequest>,
    ) -> Answered<proto::ListSourceDocumentsResponse> {
        let asked = request.into_inner();
        let documents = [RETAINED, CATALOGUED, UNREAD].map(document).into_iter();
        let documents: Vec<_> = documents
            .filter(|one| asked.status.as_ref().is_none_or(|status| *status == one.index_status))
            .filter(|_| asked.title != "zqnothing")
            .collect();
        let total_size = documents.len() as u64;
        let next_page_token = if asked.page_token.is_empty() { "next" } else { "" }.into();
        Ok(Response::new(proto::ListSourceDocumentsResponse { documents, next_page_token, total_size }))
    }

    async fn get_source_document(
        &self,
        request: Request<proto::GetSourceDocumentRequest>,
    ) -> Answered<proto::GetSourceDocumentResponse> {
        let id = request.into_inner().document_id;
        let is_retained = id == RETAINED;
        Ok(Response::new(proto::GetSourceDocumentResponse {
            document: Some(document(&id)),
            source_name: HOSTILE.into(),
            provider: "github".into(),
            mode: proto::SourceMode::Indexed.into(),
            url: Some(if is_retained { "https://github.example/x" } else { "s3://bucket/x" }.into()),
            path: "/sources/x/Plan.md".into(),
            updated_at: AT,
            content: is_retained.then(|| TEXT.into()),
            content_hash: if is_retained { HASH.into() } else { String::new() },
            format: Format::Markdown.into(),
        }))
    }

    /// Fails for cataloged documents.
    async fn retry_source_document(
        &self,
        request: Request<proto::RetrySourceDocumentRequest>,
    ) -> Answered<proto::RetrySourceDocumentResponse> {
        let id = request.into_inner().document_id;
        if id == CATALOGUED {
            let message = "only titles of this source are kept: the next run lists the document anew";
            return Err(Problem::new(Reason::RunNotStartable, message).into());
        }
        Ok(Response::new(proto::RetrySourceDocumentResponse { document: Some(document(&id)) }))
    }

    async fn fetch_source_document(
        &self,
        _: Request<proto::FetchSourceDocumentRequest>,
    ) -> Answered<proto::FetchSourceDocumentResponse> {
        Ok(Response::new(proto::FetchSourceDocumentResponse {
            title: HOSTILE.into(),
            content: TEXT.into(),
            citation: None,
            provider_operations: Some(proto::ProviderOperations { used: 1, remaining_today: 49 }),
        }))
    }

    /// The secret `taken` stands for a source whose name is taken: a refusal without a field.
    async fn connect_source(
        &self,
        request: Request<proto::ConnectSourceRequest>,
    ) -> Answered<proto::ConnectSourceResponse> {
        let draft = checked(request.into_inner().source)?;
        if draft.name.is_empty() {
            let violation = Violation::new("name", "required", "may not be empty");
            return Err(Problem::validation(vec![violation]).into());
        }
        Ok(Response::new(proto::ConnectSourceResponse { source: Some(connected(SOURCE)) }))
    }

    async fn check_source(
        &self,
        request: Request<proto::CheckSourceRequest>,
    ) -> Answered<proto::CheckSourceResponse> {
        let draft = checked(request.into_inner().source)?;
        let ok = !draft.credentials.is_empty();
        let message = if ok { "It can be read." } else { HOSTILE };
        Ok(Response::new(proto::CheckSourceResponse {
            ok,
            account: ok.then(|| HOSTILE.into()),
            message: message.into(),
        }))
    }

    async fn list_connected_sources(
        &self,
        _: Request<proto::ListConnectedSourcesRequest>,
    ) -> Answered<proto::ListConnectedSourcesResponse> {
        let sources = [SOURCE, ENDED, LIVE].map(connected).into_iter().collect();
        Ok(Response::new(proto::ListConnectedSourcesResponse { sources }))
    }

    async fn get_source(
        &self,
        request: Request<proto::GetSourceRequest>,
    ) -> Answered<proto::GetSourceResponse> {
        let id = request.into_inner().source_id;
        if ![SOURCE, ENDED, LIVE].contains(&id.as_str()) {
            return Err(nothing());
        }
        Ok(Response::new(proto::GetSourceResponse { source: Some(connected(&id)) }))
    }

    async fn update_source(
        &self,
        request: Request<proto::UpdateSourceRequest>,
    ) -> Answered<proto::UpdateSourceResponse> {
        let asked = request.into_inner();
        let draft = asked.source.unwrap_or_default();
        let mask = asked.update_mask.unwrap_or_default().paths;
        if mask.contains(&"name".to_owned()) && draft.name.is_empty() {
            let violation = Violation::new("name", "required", "may not be empty");
            return Err(Problem::validation(vec![violation]).into());
        }
        Ok(Response::new(proto::UpdateSourceResponse { source: Some(connected(&asked.source_id)) }))
    }

    async fn disconnect_source(
        &self,
        _: Request<proto::DisconnectSourceRequest>,
    ) -> Answered<proto::DisconnectSourceResponse> {
        Ok(Response::new(proto::DisconnectSourceResponse { position: 2 }))
    }

    async fn sync_source(
        &self,
        request: Request<proto::SyncSourceRequest>,
    ) -> Answered<proto::SyncSourceResponse> {
        if request.get_ref().source_id == SOURCE {
            return Err(Problem::new(Reason::RunBusy, "a run of this source is under way").into());
        }
        Ok(Response::new(proto::SyncSourceResponse { run: Some(run(RUN)) }))
    }

    async fn list_source_runs(
        &self,
        request: Request<proto::ListSourceRunsRequest>,
    ) -> Answered<proto::ListSourceRunsResponse> {
        let next_page_token = if request.get_ref().page_token.is_empty() { "next" } else { "" }.into();
        let runs =
            if request.get_ref().source_id == SOURCE { vec![run(RUN), run(PAST)] } else { vec![run(PAST)] };
        Ok(Response::new(proto::ListSourceRunsResponse { runs, next_page_token, total_size: 2 }))
    }

    async fn get_source_run(
        &self,
        request: Request<proto::GetSourceRunRequest>,
    ) -> Answered<proto::GetSourceRunResponse> {
        let id = request.into_inner().run_id;
        if ![RUN, PAST].contains(&id.as_str()) {
            return Err(nothing());
        }
        Ok(Response::new(proto::GetSourceRunResponse { run: Some(run(&id)) }))
    }

    async fn cancel_source_run(
        &self,
        _: Request<proto::CancelSourceRunRequest>,
    ) -> Answered<proto::CancelSourceRunResponse> {
        Ok(Response::new(proto::CancelSourceRunResponse { run: Some(run(PAST)) }))
    }
}
