//! Runs: what reads a source, as it stands between two steps.

use cairn_chassis::clock::Timestamp;
use cairn_proto::domain::{SourceRunKind, SourceRunStatus};
use cairn_proto::ids::{SourceId, SourceRunId, WorkspaceId};
use cairn_providers::Position;
use serde::{Deserialize, Serialize};

/// What of a run comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Stage {
    /// Documents that could not be read before are tried again.
    Retries,
    /// Pages are read from the checkpoint on.
    Pages,
    /// All pages are read: documents that the listing lacks are asked for, one by one.
    Probes,
    /// Documents that the listing lacks are removed.
    Removal,
}

/// What is done with documents that a listing lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Absent {
    /// Nothing is concluded from it.
    Keep,
    /// They are marked, and removed when they have been absent for long enough.
    Mark,
    /// They are removed.
    Remove,
}

/// How many documents a source has, and how many of them a listing lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Missing {
    pub(crate) documents: u64,
    pub(crate) absent: u64,
    /// Of the absent ones, those that a mass removal held back long enough.
    pub(crate) held_back: u64,
}

/// What a run did, in documents; operations are requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    pub(crate) listed: u64,
    pub(crate) fetched: u64,
    pub(crate) unchanged: u64,
    pub(crate) created: u64,
    pub(crate) updated: u64,
    pub(crate) removed: u64,
    pub(crate) failed: u64,
    pub(crate) operations: u64,
}

impl Counters {
    /// Counts more; operations are counted where they are reserved.
    pub(crate) fn add(&mut self, more: Self) {
        self.listed += more.listed;
        self.fetched += more.fetched;
        self.unchanged += more.unchanged;
        self.created += more.created;
        self.updated += more.updated;
        self.removed += more.removed;
        self.failed += more.failed;
    }

    /// Counts what was counted elsewhere no more.
    pub(crate) fn take_away(&mut self, less: Self) {
        self.listed = self.listed.saturating_sub(less.listed);
        self.fetched = self.fetched.saturating_sub(less.fetched);
        self.unchanged = self.unchanged.saturating_sub(less.unchanged);
        self.created = self.created.saturating_sub(less.created);
        self.updated = self.updated.saturating_sub(less.updated);
        self.removed = self.removed.saturating_sub(less.removed);
        self.failed = self.failed.saturating_sub(less.failed);
    }
}

/// Something about a run that people should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Warning {
    pub(crate) code: String,
    /// In our own words.
    pub(crate) message: String,
}

impl Warning {
    /// The most that a run keeps; further ones are counted with those of the same code.
    pub(crate) const MOST: usize = 50;

    pub(crate) fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into() }
    }
}

/// A run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) workspace: WorkspaceId,
    pub(crate) source: SourceId,
    pub(crate) id: SourceRunId,
    pub(crate) kind: SourceRunKind,
    pub(crate) state: SourceRunStatus,
    pub(crate) stage: Stage,
    /// The run that began this listing: documents that were seen bear its id.
    pub(crate) listing: SourceRunId,
    pub(crate) position: Option<Position>,
    pub(crate) absent: Absent,
    /// Prefixes of ids that nothing is concluded about.
    pub(crate) spared: Vec<String>,
    pub(crate) complete: bool,
    pub(crate) counters: Counters,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) error: Option<String>,
    /// Workers that were lost since the last checkpoint.
    pub(crate) lost: u32,
    /// Tries that failed since the last checkpoint.
    pub(crate) tries: u32,
    pub(crate) waiting_until: Option<Timestamp>,
    pub(crate) cancel_asked: bool,
    pub(crate) created_at: Timestamp,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) finished_at: Option<Timestamp>,
}

impl Run {
    /// A run that waits for a worker.
    pub(crate) fn queued(
        workspace: WorkspaceId,
        source: SourceId,
        id: SourceRunId,
        kind: SourceRunKind,
        now: Timestamp,
    ) -> Self {
        Self {
            workspace,
            source,
            id,
            kind,
            state: SourceRunStatus::Queued,
            stage: Stage::Retries,
            listing: id,
            position: None,
            absent: Absent::Keep,
            spared: Vec::new(),
            complete: false,
            counters: Counters::default(),
            warnings: Vec::new(),
            error: None,
            lost: 0,
            tries: 0,
            waiting_until: None,
            cancel_asked: false,
            created_at: now,
            started_at: None,
            finished_at: None,
        }
    }

    /// Notes something, once for each text, and not without bound.
    pub(crate) fn warn(&mut self, warning: Warning) {
        if self.warnings.len() < Warning::MOST && !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }
}
