//! The report of an import, as people download it (import.md, "Import runs").

use cairn_import::Counts;
use cairn_proto::domain::{ImportProvider, SyncAction};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Kind, Warning};

/// Which phase wrote a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ReportPhase {
    /// The preview: actions say what would be done.
    DryRun,
    Execution,
    Rollback,
}

impl ReportPhase {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::DryRun => "dry_run",
            Self::Execution => "execution",
            Self::Rollback => "rollback",
        }
    }
}

/// The outcome of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ReportAction {
    Created,
    Updated,
    Skipped,
    Conflict,
    /// By a rollback.
    Removed,
    /// A rollback left it as it was.
    Kept,
    Failed,
}

impl ReportAction {
    /// In the order in which they are listed.
    pub(crate) const ALL: [Self; 7] = [
        Self::Created,
        Self::Updated,
        Self::Skipped,
        Self::Conflict,
        Self::Removed,
        Self::Kept,
        Self::Failed,
    ];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Skipped => "skipped",
            Self::Conflict => "conflict",
            Self::Removed => "removed",
            Self::Kept => "kept",
            Self::Failed => "failed",
        }
    }
}

impl From<SyncAction> for ReportAction {
    fn from(action: SyncAction) -> Self {
        match action {
            SyncAction::Created => Self::Created,
            SyncAction::Updated => Self::Updated,
            SyncAction::Skipped => Self::Skipped,
            SyncAction::Conflict => Self::Conflict,
            SyncAction::Pruned => Self::Removed,
            SyncAction::Failed => Self::Failed,
        }
    }
}

/// The import's own folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReportRoot {
    pub(crate) folder_id: Uuid,
    /// Its name.
    pub(crate) path: String,
}

/// An object of the archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReportItem {
    /// In the archive.
    pub(crate) path: String,
    pub(crate) kind: Kind,
    pub(crate) action: ReportAction,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<Uuid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
}

/// A link that leads nowhere, or to several files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReportLink {
    pub(crate) path: String,
    pub(crate) line: usize,
    pub(crate) target: String,
    /// `not_found` or `ambiguous`.
    pub(crate) reason: String,
}

/// An entry of the archive that is not user content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReportIgnored {
    pub(crate) path: String,
    pub(crate) reason: String,
}

/// The report of an import.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    pub(crate) run_id: String,
    pub(crate) provider: ImportProvider,
    pub(crate) file_name: String,
    pub(crate) phase: ReportPhase,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) root: Option<ReportRoot>,
    pub(crate) counts: Counts,
    pub(crate) items: Vec<ReportItem>,
    pub(crate) unresolved_links: Vec<ReportLink>,
    pub(crate) ignored: Vec<ReportIgnored>,
    pub(crate) warnings: Vec<Warning>,
}
