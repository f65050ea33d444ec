//! A run.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::identity::PrincipalKind;
use cairn_proto::ids::{FolderId, SyncRunId, WorkspaceId};

use super::{ConflictPolicy, ImportProvider, RunStatus};

/// The source of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A directory: a sync.
    Directory,
    /// An archive of another tool: an import.
    Archive(ImportProvider),
}

impl Origin {
    /// The number in the database.
    pub(crate) fn number(self) -> i64 {
        match self {
            Self::Directory => 0,
            Self::Archive(provider) => i64::from(provider.number()),
        }
    }

    pub(crate) fn from_number(number: i64) -> Option<Self> {
        if number == 0 {
            return Some(Self::Directory);
        }
        ImportProvider::from_number(number).map(Self::Archive)
    }

    pub(crate) const fn is_import(self) -> bool {
        matches!(self, Self::Archive(_))
    }
}

/// What runs belong to: a directory, or archives that are imported to one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sync<'a> {
    pub(crate) workspace: WorkspaceId,
    pub(crate) origin: Origin,
    pub(crate) name: &'a str,
}

/// The principal on whose behalf a run is executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Requester {
    pub(crate) kind: PrincipalKind,
    pub(crate) id: String,
    /// Its name at that time; empty where that was not recorded.
    pub(crate) name: String,
}

/// What a running run executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The run itself.
    Sync,
    /// Its rollback.
    Rollback,
}

/// Documents of a sync; files, assets, databases and records of an import. Folders are not counted.
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

/// One reconciliation of a directory, or of an archive, with the content of a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) workspace: WorkspaceId,
    pub(crate) id: SyncRunId,
    pub(crate) origin: Origin,
    /// Of the sync: runs of one origin and name share a baseline.
    pub(crate) name: String,
    /// Of an archive, as it was sent.
    pub(crate) file_name: Option<String>,
    /// Of an archive.
    pub(crate) archive_bytes: u64,
    /// Of an attachment in it, as the plan allowed at the preview.
    pub(crate) object_bytes: u64,
    /// Where the directory, or the import's own folder, goes; absent for the root.
    pub(crate) folder: Option<FolderId>,
    pub(crate) policy: ConflictPolicy,
    pub(crate) prune: bool,
    pub(crate) state: RunStatus,
    pub(crate) phase: Phase,
    pub(crate) requester: Requester,
    pub(crate) counters: Counters,
    /// Documents to process, including those to prune.
    pub(crate) total: u64,
    /// The plan of the preview; `processed` is unused.
    pub(crate) would: Counters,
    /// Of the manifest; of an import, the files that it would create.
    pub(crate) documents: u64,
    /// Of the texts that may have to be written.
    pub(crate) bytes: u64,
    pub(crate) error: Option<String>,
    /// Workers in a row that were lost or backed off without a completed step.
    pub(crate) tries: u32,
    pub(crate) not_before: Option<Timestamp>,
    pub(crate) cancel_asked: bool,
    pub(crate) created_at: Timestamp,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) finished_at: Option<Timestamp>,
    pub(crate) rollback_until: Option<Timestamp>,
}

impl Run {
    /// What it is a run of.
    pub(crate) fn sync(&self) -> Sync<'_> {
        Sync { workspace: self.workspace, origin: self.origin, name: &self.name }
    }

    /// The state that callers see: a queued rollback counts as running.
    pub(crate) const fn shown(&self) -> RunStatus {
        match (self.state, self.phase) {
            (RunStatus::Queued, Phase::Rollback) => RunStatus::Running,
            (state, _) => state,
        }
    }
}
