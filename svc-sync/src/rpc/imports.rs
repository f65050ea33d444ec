//! `cairn.sync.v1.ImportService`.

use std::pin::Pin;

use bytes::Bytes;
use cairn_chassis::channel::MAX_MESSAGE_BYTES;
use cairn_chassis::clock::Timestamp;
use cairn_chassis::identity::{Permission, Verifier};
use cairn_chassis::status::{Problem, Violation};
use cairn_chassis::wording;
use cairn_proto::domain::{ConflictPolicy, ImportProvider, ReportPart};
use cairn_proto::sync::v1 as proto;
use cairn_proto::sync::v1::import_service_server::{ImportService, ImportServiceServer};
use cairn_proto::sync::v1::preview_import_request::Part as Sent;
use futures::stream::{self, Stream, StreamExt as _};
use tonic::metadata::{AsciiMetadataValue, MetadataMap};
use tonic::{Request, Response, Status, Streaming};

use crate::Error;
use crate::imports::{Draft, Imports, Part, ReportEntry, ReportPage, ReportQuery, RunView, UploadEnd};
use crate::model::{Kind, Origin, ReportAction, Run};
use crate::scope::Caller;

/// The bytes of one message of an upload, plus its framing.
const MAX_CHUNK_BYTES: usize = 1024 * 1024 + 64 * 1024;
/// Of a report, in one message.
const REPORT_BYTES: usize = 1024 * 1024;

pub(crate) fn server(imports: Imports, verifier: Verifier) -> ImportServiceServer<Rpc> {
    ImportServiceServer::new(Rpc { imports, verifier })
        .max_decoding_message_size(MAX_CHUNK_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES)
}

#[derive(Debug)]
pub(crate) struct Rpc {
    imports: Imports,
    verifier: Verifier,
}

impl Rpc {
    async fn caller(&self, metadata: &MetadataMap, needed: Permission) -> Result<Caller, Problem> {
        self.verifier.authorize(metadata, needed).await
    }
}

#[tonic::async_trait]
impl ImportService for Rpc {
    type ReadImportReportStream =
        Pin<Box<dyn Stream<Item = Result<proto::ReadImportReportResponse, Status>> + Send>>;

    async fn preview_import(
        &self,
        request: Request<Streaming<proto::PreviewImportRequest>>,
    ) -> Result<Response<proto::PreviewImportResponse>, Status> {
        // The workspace may be named after the archive, so only the identity is verified here.
        self.verifier.authenticate(request.metadata()).await?;
        let (metadata, _, messages) = request.into_parts();
        let verifier = self.verifier.clone();
        let parts = messages.then(move |message| {
            let (verifier, metadata) = (verifier.clone(), metadata.clone());
            async move { decode(message, &verifier, metadata).await }
        });
        let shown = self.imports.preview(Box::pin(parts)).await?;
        Ok(Response::new(proto::PreviewImportResponse { run: Some(encode(shown)) }))
    }

    async fn get_import(
        &self,
        request: Request<proto::GetImportRequest>,
    ) -> Result<Response<proto::GetImportResponse>, Status> {
        let caller = self.caller(request.metadata(), Permission::Read).await?;
        let shown = self.imports.get(&caller, &request.get_ref().run_id).await?;
        Ok(Response::new(proto::GetImportResponse { run: Some(encode(shown)) }))
    }

    async fn list_imports(
        &self,
        request: Request<proto::ListImportsRequest>,
    ) -> Result<Response<proto::ListImportsResponse>, Status> {
        let caller = self.caller(request.metadata(), Permission::Read).await?;
        let asked = request.get_ref();
        let page = self.imports.list(&caller, asked.page_size, &asked.page_token).await?;
        let runs = page.runs.into_iter().map(encode_run).collect();
        let (next_page_token, total_size) = (page.next, page.total);
        Ok(Response::new(proto::ListImportsResponse { runs, next_page_token, total_size }))
    }

    async fn read_import_report(
        &self,
        request: Request<proto::ReadImportReportRequest>,
    ) -> Result<Response<Self::ReadImportReportStream>, Status> {
        let caller = self.caller(request.metadata(), Permission::Read).await?;
        let report = self.imports.report(&caller, &request.get_ref().run_id).await?;
        let json =
            serde_json::to_vec(&report).map_err(|_| Problem::internal("a report cannot be written"))?;
        let mut left = Bytes::from(json);
        let mut pieces = Vec::new();
        while !left.is_empty() {
            let bytes = left.split_to(left.len().min(REPORT_BYTES));
            pieces.push(Ok(proto::ReadImportReportResponse { bytes }));
        }
        Ok(Response::new(stream::iter(pieces).boxed()))
    }

    async fn list_report_entries(
        &self,
        request: Request<proto::ListReportEntriesRequest>,
    ) -> Result<Response<proto::ListReportEntriesResponse>, Status> {
        let caller = self.caller(request.metadata(), Permission::Read).await?;
        let (run_id, asked) = decode_asked(request.into_inner())?;
        let page = self.imports.entries(&caller, &run_id, &asked).await?;
        Ok(Response::new(encode_page(page)))
    }

    async fn start_import(
        &self,
        request: Request<proto::StartImportRequest>,
    ) -> Result<Response<proto::StartImportResponse>, Status> {
        let caller = self.caller(request.metadata(), Permission::Write).await?;
        let shown = self.imports.start(&caller, &request.get_ref().run_id).await?;
        Ok(Response::new(proto::StartImportResponse { run: Some(encode(shown)) }))
    }

    async fn cancel_import(
        &self,
        request: Request<proto::CancelImportRequest>,
    ) -> Result<Response<proto::CancelImportResponse>, Status> {
        let caller = self.caller(request.metadata(), Permission::Write).await?;
        let shown = self.imports.cancel(&caller, &request.get_ref().run_id).await?;
        Ok(Response::new(proto::CancelImportResponse { run: Some(encode(shown)) }))
    }

    async fn roll_back_import(
        &self,
        request: Request<proto::RollBackImportRequest>,
    ) -> Result<Response<proto::RollBackImportResponse>, Status> {
        let caller = self.caller(request.metadata(), Permission::Delete).await?;
        let shown = self.imports.roll_back(&caller, &request.get_ref().run_id).await?;
        Ok(Response::new(proto::RollBackImportResponse { run: Some(encode(shown)) }))
    }
}

async fn decode(
    message: Result<proto::PreviewImportRequest, Status>,
    verifier: &Verifier,
    metadata: MetadataMap,
) -> Result<Part, Error> {
    let message = message.map_err(|status| {
        tracing::debug!(%status, "an upload was cut");
        Error::invalid("archive", "incomplete", "the upload ended before it was whole: send it again")
    })?;
    match message.part {
        Some(Sent::Bytes(bytes)) => Ok(Part::Bytes(bytes)),
        Some(Sent::End(proto::ImportEnd { size_bytes })) => Ok(Part::End(UploadEnd { size_bytes })),
        Some(Sent::Draft(draft)) => decode_draft(draft, verifier, metadata).await,
        None => Err(Error::invalid("part", "required", "send a draft, bytes, or the end")),
    }
}

async fn decode_draft(
    draft: proto::ImportDraft,
    verifier: &Verifier,
    mut metadata: MetadataMap,
) -> Result<Part, Error> {
    if let Some(identity) = &draft.identity {
        let value = AsciiMetadataValue::try_from(format!("Bearer {identity}"));
        let value = value.map_err(|_| Error::invalid("identity", "invalid", "send a signed identity"))?;
        metadata.insert("authorization", value);
    }
    let caller: Caller = verifier.authorize(&metadata, Permission::Write).await.map_err(Error::Upstream)?;
    let mut wrong = Vec::new();
    let provider = ImportProvider::from_number(draft.provider);
    if provider.is_none() {
        wrong.push(Violation::new("provider", "invalid", wording::one_of(&ImportProvider::NAMES)));
    }
    let policy = match draft.conflict_policy {
        0 => Some(ConflictPolicy::default()),
        number => ConflictPolicy::from_number(number),
    };
    if policy.is_none() {
        wrong.push(Violation::new("conflictPolicy", "invalid", wording::one_of(&ConflictPolicy::NAMES)));
    }
    let (Some(provider), Some(policy)) = (provider, policy) else { return Err(Error::Invalid(wrong)) };
    let file_name = shown_name(&draft.file_name);
    Ok(Part::Draft(Box::new((caller, Draft { provider, file_name, policy, folder: draft.folder_id }))))
}

/// The id of a run, and the requested page of its report.
fn decode_asked(request: proto::ListReportEntriesRequest) -> Result<(String, ReportQuery), Error> {
    let mut wrong = Vec::new();
    let part = match request.part {
        0 => Some(ReportPart::default()),
        number => ReportPart::from_number(number),
    };
    if part.is_none() {
        wrong.push(Violation::new("part", "invalid", wording::one_of(&ReportPart::NAMES)));
    }
    let action = ReportAction::ALL.into_iter().find(|action| action.as_str() == request.action);
    if action.is_none() && !request.action.is_empty() {
        let names = ReportAction::ALL.map(ReportAction::as_str);
        wrong.push(Violation::new("action", "invalid", wording::one_of(&names)));
    }
    let Some(part) = part.filter(|_| wrong.is_empty()) else { return Err(Error::Invalid(wrong)) };
    Ok((request.run_id, ReportQuery { part, action, size: request.page_size, token: request.page_token }))
}

fn encode_page(page: ReportPage) -> proto::ListReportEntriesResponse {
    let number = |count: usize| count as u64;
    let counts = page.counts;
    let action = |(action, count): (ReportAction, u64)| proto::ReportTally {
        of: action.as_str().to_owned(),
        count,
        message: None,
    };
    proto::ListReportEntriesResponse {
        run: Some(proto::ImportRun { place: page.place, ..encode_run(page.run) }),
        phase: page.phase.as_str().to_owned(),
        root_folder_id: page.root.map(|id| id.to_string()),
        counts: Some(proto::ReportCounts {
            files: number(counts.files),
            folders: number(counts.folders),
            assets: number(counts.assets),
            databases: number(counts.databases),
            properties: number(counts.properties),
            records: number(counts.records),
            links: number(counts.links),
            links_resolved: number(counts.links_resolved),
            links_unresolved: number(counts.links_unresolved),
            ignored: number(counts.ignored),
        }),
        actions: page.actions.into_iter().map(action).collect(),
        warnings: page
            .warnings
            .into_iter()
            .map(|tally| proto::ReportTally {
                of: tally.code,
                count: tally.count,
                message: Some(tally.message),
            })
            .collect(),
        entries: page.entries.into_iter().map(encode_entry).collect(),
        next_page_token: page.next,
        total_size: page.total,
        links: page.links,
    }
}

fn encode_entry(entry: ReportEntry) -> proto::ReportEntry {
    let of = |path: String| proto::ReportEntry { path, ..proto::ReportEntry::default() };
    match entry {
        ReportEntry::Item(item) => proto::ReportEntry {
            kind: Some(kind(item.kind).to_owned()),
            action: Some(item.action.as_str().to_owned()),
            id: item.id.map(|id| id.to_string()),
            message: item.message,
            ..of(item.path)
        },
        ReportEntry::Warning(warning) => proto::ReportEntry {
            code: Some(warning.code),
            message: Some(warning.message),
            ..of(warning.path)
        },
        ReportEntry::Link(link) => proto::ReportEntry {
            code: Some(link.reason),
            line: Some(link.line as u64),
            target: Some(link.target),
            ..of(link.path)
        },
        ReportEntry::Ignored(ignored) => {
            proto::ReportEntry { code: Some(ignored.reason), ..of(ignored.path) }
        }
    }
}

/// A file name for display: the last component of a path, shortened, without control characters.
fn shown_name(name: &str) -> String {
    const MAX_CHARS: usize = 255;
    let last = name.rsplit(['/', '\\']).next().unwrap_or(name);
    last.chars().filter(|char| !char.is_control()).take(MAX_CHARS).collect()
}

fn encode(shown: RunView) -> proto::ImportRun {
    let warnings = shown.warnings.into_iter().map(|warning| proto::SyncWarning {
        path: warning.path,
        code: warning.code,
        message: warning.message,
    });
    let results = shown.results.into_iter().map(|item| proto::ImportResult {
        path: item.path,
        kind: kind(item.kind).to_owned(),
        action: item.action.as_str().to_owned(),
        id: item.id.map(|id| id.to_string()),
        message: item.message,
    });
    proto::ImportRun {
        warnings: warnings.collect(),
        results: results.collect(),
        place: shown.place,
        ..encode_run(shown.run)
    }
}

const fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::File => "file",
        Kind::Folder => "folder",
        Kind::Asset => "asset",
        Kind::Database => "database",
        Kind::Record => "record",
    }
}

fn encode_run(run: Run) -> proto::ImportRun {
    let time = |at: Option<Timestamp>| at.map(Timestamp::to_proto);
    let provider = match run.origin {
        Origin::Archive(provider) => provider.number(),
        Origin::Directory => 0,
    };
    proto::ImportRun {
        id: run.id.to_string(),
        status: run.shown().into(),
        workspace_id: run.workspace.to_string(),
        provider,
        file_name: run.file_name.unwrap_or_default(),
        size_bytes: run.archive_bytes,
        conflict_policy: run.policy.into(),
        folder_id: run.folder.map(|id| id.to_string()),
        counters: Some(proto::Counters {
            created: run.counters.created,
            updated: run.counters.updated,
            skipped: run.counters.skipped,
            conflicts: run.counters.conflicts,
            pruned: 0,
        }),
        total: run.total,
        processed: run.counters.processed,
        would_create: run.would.created,
        would_update: run.would.updated,
        would_skip: run.would.skipped,
        would_conflict: run.would.conflicts,
        created_at: Some(run.created_at.to_proto()),
        started_at: time(run.started_at),
        finished_at: time(run.finished_at),
        rollback_until: time(run.rollback_until),
        error: run.error,
        by: super::author(run.requester),
        ..proto::ImportRun::default()
    }
}
