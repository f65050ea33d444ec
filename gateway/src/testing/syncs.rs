//! A fake svc-sync with a sync run and an import run in each state; user content is hostile.

use cairn_chassis::status::{Problem, Reason, Violation};
use cairn_proto::content::v1::Author;
use cairn_proto::sync::v1 as proto;
use cairn_proto::sync::v1::import_service_server::ImportService;
use cairn_proto::sync::v1::preview_import_request::Part;
use cairn_proto::sync::v1::sync_service_server::SyncService;
use cairn_proto::sync::v1::{RunStatus, SyncAction};
use futures::stream::{self, Iter};
use prost_types::Timestamp;
use tonic::{Request, Response, Status, Streaming};

use super::console::HOSTILE;
use super::{FILE, WORKSPACE};

/// The run in a state, by its number in the contract.
pub(crate) fn run_id(state: RunStatus) -> String {
    format!("0199c0de-0000-7000-8000-0000000000e{}", state as i32)
}

const AT: Option<Timestamp> = Some(Timestamp { seconds: 1_800_000_000, nanos: 0 });
/// Long after every test.
const UNTIL: Option<Timestamp> = Some(Timestamp { seconds: 4_000_000_000, nanos: 0 });
/// More than a page shows.
const MANY: usize = 60;

type Answered<T> = Result<Response<T>, Status>;

pub(super) struct Syncs;

fn state_of(id: &str) -> Result<RunStatus, Status> {
    let number = id.strip_prefix("0199c0de-0000-7000-8000-0000000000e").and_then(|state| state.parse().ok());
    let state = number.and_then(|number: i32| RunStatus::try_from(number).ok());
    state
        .filter(|state| *state != RunStatus::Unspecified)
        .ok_or_else(|| Problem::not_found("there is no such run").into())
}

/// Rejects a state that does not allow the start, cancel or rollback.
fn require(id: &str, states: &[RunStatus], reason: Reason) -> Result<RunStatus, Status> {
    let state = state_of(id)?;
    if states.contains(&state) {
        Ok(state)
    } else {
        Err(Problem::new(reason, "its state does not allow it").into())
    }
}

fn author() -> Option<Author> {
    Some(Author { kind: "user".to_owned(), id: "u".to_owned(), name: HOSTILE.to_owned() })
}

fn has_begun(state: RunStatus) -> bool {
    !matches!(state, RunStatus::Ready | RunStatus::Queued)
}

fn is_over(state: RunStatus) -> bool {
    has_begun(state) && state != RunStatus::Running
}

fn path(number: usize) -> String {
    format!("{HOSTILE}/{number}.md")
}

fn warning(number: usize) -> proto::SyncWarning {
    proto::SyncWarning { path: path(number), code: "odd".to_owned(), message: HOSTILE.to_owned() }
}

fn sync(state: RunStatus) -> proto::Run {
    let action = |number: usize| [SyncAction::Created, SyncAction::Conflict][number % 2];
    let change = |number| proto::PlannedChange { path: path(number), action: action(number).into() };
    let result = |number| proto::SyncResult {
        path: path(number),
        action: action(number).into(),
        file_id: Some(FILE.to_owned()),
        error: Some(HOSTILE.to_owned()),
    };
    let item =
        |kind: proto::ItemKind| proto::PrunableItem { kind: kind.into(), id: FILE.to_owned(), path: path(0) };
    proto::Run {
        id: run_id(state),
        status: state.into(),
        name: HOSTILE.to_owned(),
        workspace_id: WORKSPACE.to_owned(),
        conflict_policy: proto::ConflictPolicy::Update.into(),
        prune: true,
        counters: Some(proto::Counters { created: 30, conflicts: 30, ..Default::default() }),
        total: 60,
        processed: 30,
        warnings: vec![warning(0)],
        would_create: 30,
        would_conflict: 30,
        would_prune: vec![item(proto::ItemKind::File), item(proto::ItemKind::Folder)],
        results: (0..MANY).filter(|_| is_over(state)).map(result).collect(),
        changes: (0..MANY).filter(|_| !has_begun(state)).map(change).collect(),
        created_at: AT,
        started_at: AT.filter(|_| has_begun(state)),
        finished_at: AT.filter(|_| is_over(state)),
        rollback_until: UNTIL.filter(|_| is_over(state)),
        error: (state == RunStatus::Failed).then(|| HOSTILE.to_owned()),
        by: author(),
        place: u64::from(state == RunStatus::Queued),
        ..Default::default()
    }
}

fn import(state: RunStatus) -> proto::ImportRun {
    proto::ImportRun {
        id: run_id(state),
        status: state.into(),
        workspace_id: WORKSPACE.to_owned(),
        provider: proto::ImportProvider::NotionZip.into(),
        file_name: HOSTILE.to_owned(),
        size_bytes: 1_550,
        conflict_policy: proto::ConflictPolicy::Update.into(),
        counters: Some(proto::Counters { created: 3, ..Default::default() }),
        total: 60,
        processed: 30,
        would_create: 59,
        would_conflict: 1,
        created_at: AT,
        started_at: AT.filter(|_| has_begun(state)),
        finished_at: AT.filter(|_| is_over(state)),
        rollback_until: UNTIL.filter(|_| is_over(state)),
        error: (state == RunStatus::Failed).then(|| HOSTILE.to_owned()),
        by: author(),
        place: u64::from(state == RunStatus::Queued),
        ..Default::default()
    }
}

fn entry(part: proto::ReportPart, number: usize) -> proto::ReportEntry {
    let kinds = ["file", "folder", "asset", "database", "record"];
    let text = |text: &str| Some(text.to_owned());
    let of = proto::ReportEntry { path: path(number), ..Default::default() };
    match part {
        proto::ReportPart::Unspecified | proto::ReportPart::Items => proto::ReportEntry {
            kind: text(kinds[number % kinds.len()]),
            action: text("created"),
            id: text(FILE),
            message: text(HOSTILE),
            ..of
        },
        proto::ReportPart::Warnings => proto::ReportEntry { code: text("odd"), message: text(HOSTILE), ..of },
        proto::ReportPart::Links => {
            proto::ReportEntry { code: text("not_found"), line: Some(3), target: text(HOSTILE), ..of }
        }
        proto::ReportPart::Ignored => proto::ReportEntry { code: text("hidden"), ..of },
    }
}

#[tonic::async_trait]
impl SyncService for Syncs {
    async fn preview_sync(
        &self,
        _: Request<proto::PreviewSyncRequest>,
    ) -> Answered<proto::PreviewSyncResponse> {
        Err(Status::unimplemented(""))
    }

    async fn get_sync(&self, request: Request<proto::GetSyncRequest>) -> Answered<proto::GetSyncResponse> {
        let state = state_of(&request.into_inner().run_id)?;
        Ok(Response::new(proto::GetSyncResponse { run: Some(sync(state)) }))
    }

    async fn list_syncs(
        &self,
        request: Request<proto::ListSyncsRequest>,
    ) -> Answered<proto::ListSyncsResponse> {
        let states = (1..=8).filter_map(|number| RunStatus::try_from(number).ok());
        let runs =
            if request.into_inner().name == "nothing" { Vec::new() } else { states.map(sync).collect() };
        Ok(Response::new(proto::ListSyncsResponse {
            runs,
            next_page_token: "next".to_owned(),
            total_size: 70,
        }))
    }

    async fn start_sync(
        &self,
        request: Request<proto::StartSyncRequest>,
    ) -> Answered<proto::StartSyncResponse> {
        let startable = [RunStatus::Ready, RunStatus::Failed, RunStatus::Cancelled];
        let state = require(&request.into_inner().run_id, &startable, Reason::RunNotStartable)?;
        if state == RunStatus::Failed {
            let limit = Violation::new("files", "limit_exceeded", "1 of 1 are used, and this would add 1");
            let problem = Problem::new(Reason::LimitExceeded, "the plan has no room");
            return Err(Problem { violations: vec![limit], ..problem }.into());
        }
        Ok(Response::new(proto::StartSyncResponse { run: Some(sync(state)) }))
    }

    async fn cancel_sync(
        &self,
        request: Request<proto::CancelSyncRequest>,
    ) -> Answered<proto::CancelSyncResponse> {
        let open = [RunStatus::Ready, RunStatus::Queued, RunStatus::Running];
        let state = require(&request.into_inner().run_id, &open, Reason::RunNotCancellable)?;
        Ok(Response::new(proto::CancelSyncResponse { run: Some(sync(state)) }))
    }

    async fn roll_back_sync(
        &self,
        request: Request<proto::RollBackSyncRequest>,
    ) -> Answered<proto::RollBackSyncResponse> {
        let state = require(&request.into_inner().run_id, &[RunStatus::Completed], Reason::RunNotRevertible)?;
        Ok(Response::new(proto::RollBackSyncResponse { run: Some(sync(state)) }))
    }

    async fn delete_sync(
        &self,
        request: Request<proto::DeleteSyncRequest>,
    ) -> Answered<proto::DeleteSyncResponse> {
        require(&request.into_inner().run_id, &[RunStatus::Ready, RunStatus::Completed], Reason::RunBusy)?;
        Ok(Response::new(proto::DeleteSyncResponse {}))
    }
}

#[tonic::async_trait]
impl ImportService for Syncs {
    type ReadImportReportStream = Iter<std::vec::IntoIter<Result<proto::ReadImportReportResponse, Status>>>;

    async fn preview_import(
        &self,
        request: Request<Streaming<proto::PreviewImportRequest>>,
    ) -> Answered<proto::PreviewImportResponse> {
        let mut parts = request.into_inner();
        while let Some(message) = parts.message().await? {
            if let Some(Part::Draft(draft)) = message.part {
                match draft.file_name.as_str() {
                    "large.zip" => {
                        return Err(Problem::new(Reason::PayloadTooLarge, "it is too large").into());
                    }
                    "odd.zip" => {
                        let wrong = Violation::new("archive", "archive_invalid", "is no ZIP file");
                        return Err(Problem::validation(vec![wrong]).into());
                    }
                    _ => {}
                }
            }
        }
        Ok(Response::new(proto::PreviewImportResponse { run: Some(import(RunStatus::Ready)) }))
    }

    async fn get_import(
        &self,
        request: Request<proto::GetImportRequest>,
    ) -> Answered<proto::GetImportResponse> {
        let state = state_of(&request.into_inner().run_id)?;
        Ok(Response::new(proto::GetImportResponse { run: Some(import(state)) }))
    }

    async fn list_imports(
        &self,
        _: Request<proto::ListImportsRequest>,
    ) -> Answered<proto::ListImportsResponse> {
        let states = (1..=8).filter_map(|number| RunStatus::try_from(number).ok());
        let runs = states.map(import).collect();
        Ok(Response::new(proto::ListImportsResponse {
            runs,
            next_page_token: "next".to_owned(),
            total_size: 70,
        }))
    }

    async fn read_import_report(
        &self,
        request: Request<proto::ReadImportReportRequest>,
    ) -> Answered<Self::ReadImportReportStream> {
        state_of(&request.into_inner().run_id)?;
        let piece = proto::ReadImportReportResponse { bytes: "{}".into() };
        Ok(Response::new(stream::iter(vec![Ok(piece)])))
    }

    async fn list_report_entries(
        &self,
        request: Request<proto::ListReportEntriesRequest>,
    ) -> Answered<proto::ListReportEntriesResponse> {
        let asked = request.into_inner();
        let state = state_of(&asked.run_id)?;
        if asked.page_token == "odd" || asked.action == "odd" {
            return Err(Problem::validation(vec![Violation::new("pageToken", "invalid", "is odd")]).into());
        }
        let tally =
            |of: &str| proto::ReportTally { of: of.to_owned(), count: 30, message: Some(HOSTILE.to_owned()) };
        let phase = if is_over(state) { "execution" } else { "dry_run" };
        Ok(Response::new(proto::ListReportEntriesResponse {
            run: Some(import(state)),
            phase: phase.to_owned(),
            root_folder_id: Some(FILE.to_owned()),
            counts: Some(proto::ReportCounts {
                files: 3,
                databases: 1,
                links_unresolved: 2,
                ..Default::default()
            }),
            actions: vec![tally("created"), tally("conflict")],
            warnings: vec![tally("odd")],
            links: 2,
            entries: (0..50).map(|number| entry(asked.part(), number)).collect(),
            next_page_token: "50".to_owned(),
            total_size: 60,
        }))
    }

    async fn start_import(
        &self,
        request: Request<proto::StartImportRequest>,
    ) -> Answered<proto::StartImportResponse> {
        let startable = [RunStatus::Ready, RunStatus::Failed, RunStatus::Cancelled];
        let state = require(&request.into_inner().run_id, &startable, Reason::RunNotStartable)?;
        Ok(Response::new(proto::StartImportResponse { run: Some(import(state)) }))
    }

    async fn cancel_import(
        &self,
        request: Request<proto::CancelImportRequest>,
    ) -> Answered<proto::CancelImportResponse> {
        let open = [RunStatus::Ready, RunStatus::Queued, RunStatus::Running];
        let state = require(&request.into_inner().run_id, &open, Reason::RunNotCancellable)?;
        Ok(Response::new(proto::CancelImportResponse { run: Some(import(state)) }))
    }

    async fn roll_back_import(
        &self,
        request: Request<proto::RollBackImportRequest>,
    ) -> Answered<proto::RollBackImportResponse> {
        let state = require(&request.into_inner().run_id, &[RunStatus::Completed], Reason::RunNotRevertible)?;
        Ok(Response::new(proto::RollBackImportResponse { run: Some(import(state)) }))
    }
}
