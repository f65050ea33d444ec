//! Runs of imports (import.md, "Import runs").

use cairn_chassis::status::Problem;
use cairn_proto::content::v1::Author;
use cairn_proto::domain::{ConflictPolicy, ImportProvider, RunStatus};
use cairn_proto::sync::v1::{self as proto, ReportCounts, ReportEntry, ReportTally, SyncWarning};
use serde::Serialize;
use utoipa::ToSchema;

use super::{SyncCounters, optional_time, time};

/// One import of an archive. Numbers count files, assets, databases and records; folders are not counted.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ImportRun {
    #[schema(format = "uuid")]
    pub(crate) id: String,
    #[schema(format = "uuid")]
    pub(crate) workspace_id: String,
    pub(crate) provider: ImportProvider,
    /// Of the archive, as it was sent.
    pub(crate) file_name: String,
    pub(crate) size_bytes: u64,
    pub(crate) status: RunStatus,
    pub(crate) conflict_policy: ConflictPolicy,
    /// Where the import's own folder goes; null for the root.
    #[schema(required = true, format = "uuid")]
    pub(crate) folder_id: Option<String>,
    pub(crate) counters: SyncCounters,
    /// Objects to look at.
    pub(crate) total: u64,
    /// Of these, how many are done.
    pub(crate) processed: u64,
    /// The first 1 000; the report has all. Left out of lists, as are the results.
    pub(crate) warnings: Vec<SyncWarning>,
    /// What the preview found.
    pub(crate) would_create: u64,
    pub(crate) would_update: u64,
    pub(crate) would_skip: u64,
    pub(crate) would_conflict: u64,
    /// What became of each object, when the run is over: the first 1 000; the report has all.
    pub(crate) results: Vec<ImportResult>,
    #[schema(format = DateTime)]
    pub(crate) created_at: String,
    #[schema(required = true, format = DateTime)]
    pub(crate) started_at: Option<String>,
    #[schema(required = true, format = DateTime)]
    pub(crate) finished_at: Option<String>,
    /// Until when it can be rolled back; null when it cannot.
    #[schema(required = true, format = DateTime)]
    pub(crate) rollback_until: Option<String>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    /// Who asked for it, for its start or for its rollback, whichever was last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) by: Option<Author>,
    /// While it is queued: its place among the runs of the workspace that wait, from 1. Left out of lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) place: Option<u64>,
}

/// One of the lists of an import's report, a page of it, with what the report comes to.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ImportReport {
    /// Without warnings and results.
    pub(crate) run: ImportRun,
    /// What the report is of: `dry_run`, `execution` or `rollback`.
    pub(crate) phase: String,
    /// The import's own folder, once it is there.
    #[schema(required = true, format = "uuid")]
    pub(crate) root_folder_id: Option<String>,
    pub(crate) counts: ReportCounts,
    /// How many items there are of each action.
    pub(crate) actions: Vec<ReportTally>,
    /// How many warnings there are of each code.
    pub(crate) warnings: Vec<ReportTally>,
    /// How many links are listed.
    pub(crate) links: u64,
    pub(crate) entries: Vec<ReportEntry>,
    /// How many entries there are in all.
    pub(crate) total: u64,
    /// Where to go on; null after the last page.
    #[schema(required = true)]
    pub(crate) next_cursor: Option<String>,
}

impl TryFrom<proto::ListReportEntriesResponse> for ImportReport {
    type Error = Problem;

    fn try_from(page: proto::ListReportEntriesResponse) -> Result<Self, Problem> {
        let run = page.run.ok_or_else(|| Problem::internal("a report came without its run"))?;
        Ok(Self {
            run: run.try_into()?,
            phase: page.phase,
            root_folder_id: page.root_folder_id,
            counts: page.counts.unwrap_or_default(),
            actions: page.actions,
            warnings: page.warnings,
            links: page.links,
            entries: page.entries,
            total: page.total_size,
            next_cursor: Some(page.next_page_token).filter(|token| !token.is_empty()),
        })
    }
}

/// What became of an object of the archive.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ImportResult {
    /// In the archive.
    pub(crate) path: String,
    /// `file`, `folder`, `asset`, `database` or `record`.
    pub(crate) kind: String,
    /// `created`, `updated`, `skipped`, `conflict`, `removed`, `kept` or `failed`.
    pub(crate) action: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = "uuid")]
    pub(crate) id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
}

impl TryFrom<proto::ImportRun> for ImportRun {
    type Error = Problem;

    fn try_from(run: proto::ImportRun) -> Result<Self, Problem> {
        let unknown = || Problem::internal("an import run has an unknown status, policy or provider");
        let result = |one: proto::ImportResult| ImportResult {
            path: one.path,
            kind: one.kind,
            action: one.action,
            id: one.id,
            message: one.message,
        };
        Ok(Self {
            id: run.id,
            workspace_id: run.workspace_id,
            provider: ImportProvider::from_number(run.provider).ok_or_else(unknown)?,
            file_name: run.file_name,
            size_bytes: run.size_bytes,
            status: RunStatus::from_number(run.status).ok_or_else(unknown)?,
            conflict_policy: ConflictPolicy::from_number(run.conflict_policy).ok_or_else(unknown)?,
            folder_id: run.folder_id,
            counters: run.counters.unwrap_or_default().into(),
            total: run.total,
            processed: run.processed,
            warnings: run.warnings,
            would_create: run.would_create,
            would_update: run.would_update,
            would_skip: run.would_skip,
            would_conflict: run.would_conflict,
            results: run.results.into_iter().map(result).collect(),
            created_at: time(run.created_at.as_ref()),
            started_at: optional_time(run.started_at.as_ref()),
            finished_at: optional_time(run.finished_at.as_ref()),
            rollback_until: optional_time(run.rollback_until.as_ref()),
            error: run.error,
            by: run.by,
            place: Some(run.place).filter(|place| *place > 0),
        })
    }
}
