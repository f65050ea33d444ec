//! Runs of imports (import.md, "Import runs").

use cairn_chassis::status::Problem;
use cairn_proto::domain::{ConflictPolicy, ImportProvider, RunStatus};
use cairn_proto::sync::v1::{self as proto, SyncWarning};
use serde::Serialize;
use utoipa::ToSchema;

use super::{SyncCounters, optional_time, time};

/// One import of an archive. Numbers count files, assets, databases and records; folders are not counted.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ImportRun {
    #[schema(format = "uuid")]
    id: String,
    #[schema(format = "uuid")]
    workspace_id: String,
    provider: ImportProvider,
    /// Of the archive, as it was sent.
    file_name: String,
    size_bytes: u64,
    status: RunStatus,
    conflict_policy: ConflictPolicy,
    /// Where the import's own folder goes; null for the root.
    #[schema(required = true, format = "uuid")]
    folder_id: Option<String>,
    counters: SyncCounters,
    /// Objects to look at.
    total: u64,
    /// Of these, how many are done.
    processed: u64,
    /// The first 1 000; the report has all. Left out of lists, as are the results.
    warnings: Vec<SyncWarning>,
    /// What the preview found.
    would_create: u64,
    would_update: u64,
    would_skip: u64,
    would_conflict: u64,
    /// What became of each object, when the run is over: the first 1 000; the report has all.
    results: Vec<ImportResult>,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(required = true, format = DateTime)]
    started_at: Option<String>,
    #[schema(required = true, format = DateTime)]
    finished_at: Option<String>,
    /// Until when it can be rolled back; null when it cannot.
    #[schema(required = true, format = DateTime)]
    rollback_until: Option<String>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// What became of an object of the archive.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ImportResult {
    /// In the archive.
    path: String,
    /// `file`, `folder`, `asset`, `database` or `record`.
    kind: String,
    /// `created`, `updated`, `skipped`, `conflict`, `removed`, `kept` or `failed`.
    action: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = "uuid")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
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
        })
    }
}
