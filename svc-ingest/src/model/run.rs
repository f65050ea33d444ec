//! Runs, which read sources: their state between two steps.

use cairn_chassis::clock::Timestamp;
use cairn_proto::domain::{SourceRunKind, SourceRunStatus};
use cairn_proto::ids::{SourceId, SourceRunId, WorkspaceId};
use cairn_providers::Position;
use serde::{Deserialize, Serialize};

/// The next stage of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Stage {
    /// Retry documents that could not be read before.
    Retries,
    /// Read pages from the checkpoint on.
    Pages,
    /// Probe the documents that the listing lacks, one by one.
    Probes,
    /// Remove documents that the listing lacks.
    Removal,
}

/// What to do with documents that a listing lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Absent {
    /// Keep them.
    Keep,
    /// Mark them, and remove those that have been marked for long enough.
    Mark,
    /// Remove them.
    Remove,
}

/// How many documents a source has, and how many of them a listing lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Missing {
    pub(crate) documents: u64,
    pub(crate) absent: u64,
    /// Of the absent ones, those that have been held back for long enough.
    pub(crate) held_back: u64,
}

/// The counters of a run: documents, and requests as operations.
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
    /// Adds counters, except operations, which are counted where they are reserved.
    pub(crate) fn add(&mut self, more: Self) {
        self.listed += more.listed;
        self.fetched += more.fetched;
        self.unchanged += more.unchanged;
        self.created += more.created;
        self.updated += more.updated;
        self.removed += more.removed;
        self.failed += more.failed;
    }

    /// Subtracts counters that are counted elsewhere.
    pub(crate) fn subtract(&mut self, less: Self) {
        self.listed = self.listed.saturating_sub(less.listed);
        self.fetched = self.fetched.saturating_sub(less.fetched);
        self.unchanged = self.unchanged.saturating_sub(less.unchanged);
        self.created = self.created.saturating_sub(less.created);
        self.updated = self.updated.saturating_sub(less.updated);
        self.removed = self.removed.saturating_sub(less.removed);
        self.failed = self.failed.saturating_sub(less.failed);
    }
}

/// A warning about a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Warning {
    pub(crate) code: String,
    /// Never text of the provider.
    pub(crate) message: String,
}

impl Warning {
    /// The limit of a run; further warnings are dropped.
    pub(crate) const MAX_PER_RUN: usize = 50;

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
    /// The run that started this listing; seen documents are marked with its id.
    pub(crate) listing: SourceRunId,
    pub(crate) position: Option<Position>,
    pub(crate) absent: Absent,
    /// Prefixes of external ids that the listing did not cover.
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
    /// A queued run.
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

    /// Adds a warning, unless it is a duplicate or the limit is reached.
    pub(crate) fn warn(&mut self, warning: Warning) {
        if self.warnings.len() < Warning::MAX_PER_RUN && !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }
}
