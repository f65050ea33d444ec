//! Connected sources.

use std::time::Duration;

use cairn_chassis::clock::Timestamp;
use cairn_proto::domain::{SourceMode, SourceRunStatus};
use cairn_proto::ids::{SourceId, WorkspaceId};
use cairn_providers::{Position, ProviderKind};
use serde_json::Value;

use super::run::Run;

/// A source without its credentials.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Source {
    pub(crate) workspace: WorkspaceId,
    pub(crate) id: SourceId,
    pub(crate) name: String,
    /// The name as a path segment.
    pub(crate) folder: String,
    pub(crate) provider: ProviderKind,
    pub(crate) mode: SourceMode,
    pub(crate) settings: Value,
    /// The last characters of the secret, so that people can tell secrets apart; absent without credentials.
    pub(crate) credential_hint: Option<String>,
    /// The account of the credentials, as the provider names it: untrusted. Empty if the provider does not tell.
    pub(crate) account: Option<String>,
    pub(crate) every: Duration,
    /// Live calls per day.
    pub(crate) daily_budget: u32,
    pub(crate) paused: bool,
    pub(crate) needs_credentials: bool,
    /// Why the last run failed, for people.
    pub(crate) error: Option<String>,
    /// Where the next page of changes starts.
    pub(crate) position: Option<Position>,
    pub(crate) not_before: Option<Timestamp>,
    /// Consecutive failed runs.
    pub(crate) failures: u32,
    pub(crate) next_run_at: Option<Timestamp>,
    /// Whether that run does a full listing.
    pub(crate) full_next: bool,
    /// The end of the last complete listing.
    pub(crate) listed_at: Option<Timestamp>,
    pub(crate) last_synced_at: Option<Timestamp>,
    /// The number of visible documents.
    pub(crate) documents: u64,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
}

/// The status of a source (contract, "Connected sources").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    NeverSynced,
    Queued,
    Syncing,
    Ready,
    Waiting,
    Failed,
    NeedsCredentials,
    Paused,
}

impl Status {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::NeverSynced => "never_synced",
            Self::Queued => "queued",
            Self::Syncing => "syncing",
            Self::Ready => "ready",
            Self::Waiting => "waiting",
            Self::Failed => "failed",
            Self::NeedsCredentials => "needs_credentials",
            Self::Paused => "paused",
        }
    }
}

impl Source {
    /// The status, given the unfinished run.
    pub(crate) fn status(&self, open: Option<&Run>, now: Timestamp) -> Status {
        if self.needs_credentials {
            return Status::NeedsCredentials;
        }
        if self.paused {
            return Status::Paused;
        }
        match open.map(|run| run.state) {
            Some(SourceRunStatus::Queued) => return Status::Queued,
            Some(SourceRunStatus::Running) => return Status::Syncing,
            Some(SourceRunStatus::Waiting) => return Status::Waiting,
            Some(
                SourceRunStatus::Completed
                | SourceRunStatus::CompletedWithWarnings
                | SourceRunStatus::Failed
                | SourceRunStatus::Cancelled,
            )
            | None => {}
        }
        if self.not_before.is_some_and(|until| until > now) {
            Status::Waiting
        } else if self.error.is_some() {
            Status::Failed
        } else if self.last_synced_at.is_none() && self.mode.has_runs() {
            Status::NeverSynced
        } else {
            Status::Ready
        }
    }
}

/// A source with its usage and run, as lists show it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SourceDetails {
    pub(crate) source: Source,
    /// Live calls made today.
    pub(crate) used_today: u32,
    /// The unfinished run, else the last one.
    pub(crate) run: Option<Run>,
}

impl SourceDetails {
    pub(crate) fn status(&self, now: Timestamp) -> Status {
        let open = self.run.as_ref().filter(|run| !run.state.is_over());
        self.source.status(open, now)
    }

    /// Until when the provider is rate limited, for the waiting run or for all requests.
    pub(crate) fn waiting_until(&self, now: Timestamp) -> Option<Timestamp> {
        let waits = self.run.as_ref().filter(|run| run.state == SourceRunStatus::Waiting);
        let of_run = waits.and_then(|run| run.waiting_until);
        of_run.or_else(|| self.source.not_before.filter(|until| *until > now))
    }
}

/// Credentials as they are stored.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SealedCredentials {
    pub(crate) envelope: Vec<u8>,
    pub(crate) sealing: String,
}

cairn_chassis::debug_fields!(SealedCredentials { sealing });

/// The account that a request is charged to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Spending {
    /// Questions, which have a daily budget.
    Live,
    /// Runs, which the provider's own rate limits pace.
    Runs,
}
