//! A run.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::identity::PrincipalKind;
use cairn_proto::ids::{FolderId, SyncRunId, WorkspaceId};

use super::{ConflictPolicy, RunStatus};

/// Who a run goes on for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asker {
    pub(crate) kind: PrincipalKind,
    pub(crate) id: String,
}

/// What a run that is under way does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// What its manifest asks for.
    Sync,
    /// It takes back what it did.
    Rollback,
}

/// Documents; folders are not counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    pub(crate) created: u64,
    pub(crate) updated: u64,
    pub(crate) skipped: u64,
    pub(crate) conflicts: u64,
    pub(crate) pruned: u64,
    /// All of these, and those that the workspace refused.
    pub(crate) processed: u64,
}

/// One reconciliation of a directory with the files of a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) workspace: WorkspaceId,
    pub(crate) id: SyncRunId,
    /// Of the sync.
    pub(crate) name: String,
    /// Where the directory goes; absent for the root.
    pub(crate) folder: Option<FolderId>,
    pub(crate) policy: ConflictPolicy,
    pub(crate) prune: bool,
    pub(crate) state: RunStatus,
    pub(crate) phase: Phase,
    pub(crate) asker: Asker,
    pub(crate) counters: Counters,
    /// Documents to look at, those that prune takes included.
    pub(crate) total: u64,
    /// What the preview found: `processed` is not used.
    pub(crate) would: Counters,
    /// Of the manifest.
    pub(crate) documents: u64,
    /// Of the texts that may have to be written.
    pub(crate) bytes: u64,
    pub(crate) error: Option<String>,
    /// Workers in a row that were lost or gave up for now, without a step done.
    pub(crate) tries: u32,
    pub(crate) not_before: Option<Timestamp>,
    pub(crate) cancel_asked: bool,
    pub(crate) created_at: Timestamp,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) finished_at: Option<Timestamp>,
    pub(crate) rollback_until: Option<Timestamp>,
}

impl Run {
    /// What callers are told of its state: nobody asks whether a rollback waits for its turn.
    pub(crate) const fn shown(&self) -> RunStatus {
        match (self.state, self.phase) {
            (RunStatus::Queued, Phase::Rollback) => RunStatus::Running,
            (state, _) => state,
        }
    }
}
