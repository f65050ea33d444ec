//! Runs of directory syncs (contract, "Sync run").

use cairn_chassis::status::Problem;
use cairn_proto::content::v1::Author;
use cairn_proto::domain::{ConflictPolicy, RunStatus, SyncAction};
use cairn_proto::sync::v1::{self as proto, ItemKind, SyncWarning};
use serde::Serialize;
use utoipa::ToSchema;

use super::{optional_time, time};

/// One reconciliation of a directory with the files of a workspace.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SyncRun {
    #[schema(format = "uuid")]
    pub(crate) id: String,
    #[schema(format = "uuid")]
    pub(crate) workspace_id: String,
    /// Of the sync.
    pub(crate) name: String,
    pub(crate) status: RunStatus,
    pub(crate) conflict_policy: ConflictPolicy,
    pub(crate) prune: bool,
    /// Where the directory goes; null for the root.
    #[schema(format = "uuid")]
    pub(crate) folder_id: Option<String>,
    pub(crate) counters: SyncCounters,
    /// Documents to look at, those that prune takes included.
    pub(crate) total: u64,
    /// Of these, how many are done.
    pub(crate) processed: u64,
    /// Left out of lists, as are what would be pruned and the results.
    pub(crate) warnings: Vec<SyncWarning>,
    /// What the preview found.
    pub(crate) would_create: u64,
    pub(crate) would_update: u64,
    pub(crate) would_skip: u64,
    pub(crate) would_conflict: u64,
    /// What earlier runs wrote and the manifest lacks; it goes to trash only when the run prunes.
    pub(crate) would_prune: Vec<PrunableItem>,
    /// What would be done to each document of which something would, until the run is started. Left out of lists.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub(crate) changes: Vec<PlannedChange>,
    /// What became of each document, when the run is over.
    pub(crate) results: Vec<SyncResult>,
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

/// Documents; folders are not counted.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SyncCounters {
    pub(crate) created: u64,
    pub(crate) updated: u64,
    pub(crate) skipped: u64,
    pub(crate) conflicts: u64,
    pub(crate) pruned: u64,
}

/// Something that an earlier run wrote and the manifest lacks.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PrunableItem {
    /// `file` or `folder`.
    pub(crate) kind: &'static str,
    #[schema(format = "uuid")]
    pub(crate) id: String,
    /// In the directory.
    pub(crate) path: String,
}

/// What a run would do to a document: `created`, `updated`, or nothing because of a `conflict`.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PlannedChange {
    pub(crate) path: String,
    pub(crate) action: SyncAction,
}

/// What became of a document.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SyncResult {
    pub(crate) path: String,
    pub(crate) action: SyncAction,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) file_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

impl From<proto::Counters> for SyncCounters {
    fn from(counters: proto::Counters) -> Self {
        Self {
            created: counters.created,
            updated: counters.updated,
            skipped: counters.skipped,
            conflicts: counters.conflicts,
            pruned: counters.pruned,
        }
    }
}

impl TryFrom<proto::Run> for SyncRun {
    type Error = Problem;

    fn try_from(run: proto::Run) -> Result<Self, Problem> {
        let unknown = || Problem::internal("a sync run has an unknown status, policy or action");
        let action = |number: i32| SyncAction::from_number(number).ok_or_else(unknown);
        let counters = run.counters.unwrap_or_default();
        let change = |one: proto::PlannedChange| {
            Ok::<_, Problem>(PlannedChange { path: one.path, action: action(one.action)? })
        };
        let result = |one: proto::SyncResult| {
            let (path, file_id, error) = (one.path, one.file_id, one.error);
            Ok::<_, Problem>(SyncResult { path, action: action(one.action)?, file_id, error })
        };
        Ok(Self {
            id: run.id,
            workspace_id: run.workspace_id,
            name: run.name,
            status: RunStatus::from_number(run.status).ok_or_else(unknown)?,
            conflict_policy: ConflictPolicy::from_number(run.conflict_policy).ok_or_else(unknown)?,
            prune: run.prune,
            folder_id: run.folder_id,
            counters: counters.into(),
            total: run.total,
            processed: run.processed,
            warnings: run.warnings,
            would_create: run.would_create,
            would_update: run.would_update,
            would_skip: run.would_skip,
            would_conflict: run.would_conflict,
            would_prune: run.would_prune.into_iter().map(Into::into).collect(),
            changes: run.changes.into_iter().map(change).collect::<Result<_, _>>()?,
            results: run.results.into_iter().map(result).collect::<Result<_, _>>()?,
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

impl From<proto::PrunableItem> for PrunableItem {
    fn from(item: proto::PrunableItem) -> Self {
        let kind = match item.kind() {
            ItemKind::Folder => "folder",
            ItemKind::File | ItemKind::Unspecified => "file",
        };
        Self { kind, id: item.id, path: item.path }
    }
}
