//! Aggregates events in memory, sorted by key: processes that update the same rows must lock them in one order, or they would
//! deadlock.

use std::collections::{BTreeMap, HashMap, HashSet};

use cairn_chassis::call::Channel;
use cairn_chassis::clock::Timestamp;
use cairn_proto::feed::v1::Kind;
use cairn_proto::ids::WorkspaceId;
use uuid::Uuid;

use super::day::Day;
use super::latency::Bucket;
use super::measured::{Operation, Retrieval, Strategy};

/// An event in the queue.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    /// A retrieval has ended.
    Retrieval(Box<Retrieval>),
    /// A connection to a workspace.
    Connection { workspace: WorkspaceId, channel: Channel, at: Timestamp },
}

/// The dimensions of a count.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CountKey {
    pub(crate) workspace: WorkspaceId,
    pub(crate) day: Day,
    pub(crate) operation: Operation,
    pub(crate) channel: Channel,
    pub(crate) strategy: Strategy,
    pub(crate) plan: String,
    pub(crate) principal_kind: &'static str,
    pub(crate) principal_id: String,
}

/// Sums of retrievals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// All that were asked for.
    pub(crate) total: u64,
    /// Those that could not be answered.
    pub(crate) failed: u64,
    /// Those that were answered with nothing.
    pub(crate) empty: u64,
    /// Those of which a cache held something.
    pub(crate) cached: u64,
    /// Pieces of evidence that were returned.
    pub(crate) results: u64,
    /// Their text, in bytes.
    pub(crate) content_bytes: u64,
    /// Operations that were asked of providers.
    pub(crate) provider_operations: u64,
}

impl Counts {
    /// Adds to these.
    pub(crate) fn add(&mut self, more: &Self) {
        let sums = [
            (&mut self.total, more.total),
            (&mut self.failed, more.failed),
            (&mut self.empty, more.empty),
            (&mut self.cached, more.cached),
            (&mut self.results, more.results),
            (&mut self.content_bytes, more.content_bytes),
            (&mut self.provider_operations, more.provider_operations),
        ];
        for (sum, more) in sums {
            *sum = sum.saturating_add(more);
        }
    }

    fn of(retrieval: &Retrieval) -> Self {
        let Some(found) = &retrieval.found else {
            return Self { total: 1, failed: 1, ..Self::default() };
        };
        Self {
            total: 1,
            failed: 0,
            empty: u64::from(found.results == 0),
            cached: u64::from(found.cached),
            results: found.results,
            content_bytes: found.content_bytes,
            provider_operations: found.provider_operations,
        }
    }
}

/// The key of a latency bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LatencyKey {
    pub(crate) workspace: WorkspaceId,
    pub(crate) day: Day,
    pub(crate) operation: Operation,
    pub(crate) bucket: Bucket,
}

/// A document on a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DocumentKey {
    pub(crate) workspace: WorkspaceId,
    pub(crate) day: Day,
    pub(crate) document: Uuid,
    pub(crate) kind: Kind,
}

/// How often a document was in an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct DocumentCounts {
    /// Answers that held it.
    pub(crate) retrievals: u64,
    /// Those that had it first.
    pub(crate) best: u64,
}

/// A milestone of a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Milestone {
    /// The first connection.
    Connection,
    /// The first retrieval.
    Retrieval,
    /// The first retrieval with a result.
    Success,
}

impl Milestone {
    /// The spelling in the table.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Connection => "connection",
            Self::Retrieval => "retrieval",
            Self::Success => "success",
        }
    }
}

/// The key of a first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FirstKey {
    pub(crate) workspace: WorkspaceId,
    pub(crate) channel: Channel,
    pub(crate) milestone: Milestone,
}

/// A first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct First {
    pub(crate) at: Timestamp,
    pub(crate) operation: Option<Operation>,
}

/// First times that are already written. A slow retrieval may end long after others that began later.
pub(crate) type KnownFirsts = HashMap<FirstKey, Timestamp>;

/// Sums that are not written yet.
#[derive(Debug, Default)]
pub(crate) struct Rollup {
    pub(crate) counts: BTreeMap<CountKey, Counts>,
    pub(crate) latencies: BTreeMap<LatencyKey, u64>,
    pub(crate) documents: BTreeMap<DocumentKey, DocumentCounts>,
    pub(crate) firsts: BTreeMap<FirstKey, First>,
}

impl Rollup {
    /// Adds an event. First times that are `known` are skipped, unless this one is earlier.
    pub(crate) fn add(&mut self, event: Event, known: &KnownFirsts) {
        match event {
            Event::Retrieval(retrieval) => self.add_retrieval(*retrieval, known),
            Event::Connection { workspace, channel, at } => {
                let key = FirstKey { workspace, channel, milestone: Milestone::Connection };
                self.add_first(key, First { at, operation: None }, known);
            }
        }
    }

    fn add_retrieval(&mut self, retrieval: Retrieval, known: &KnownFirsts) {
        let Retrieval { workspace, operation, channel, .. } = retrieval;
        let day = Day::of(retrieval.began_at);
        let first = First { at: retrieval.began_at, operation: Some(operation) };
        let mut milestone =
            |milestone| self.add_first(FirstKey { workspace, channel, milestone }, first, known);
        milestone(Milestone::Retrieval);
        let counts = Counts::of(&retrieval);
        if counts.results > 0 {
            milestone(Milestone::Success);
        }
        if let Some(found) = &retrieval.found {
            let bucket = Bucket::of(retrieval.took);
            *self.latencies.entry(LatencyKey { workspace, day, operation, bucket }).or_default() += 1;
            let mut seen = HashSet::new();
            for (place, (kind, document)) in found.documents.iter().copied().enumerate() {
                if seen.insert(document) {
                    let key = DocumentKey { workspace, day, document, kind };
                    let held = self.documents.entry(key).or_default();
                    held.retrievals += 1;
                    held.best += u64::from(place == 0);
                }
            }
        }
        let key = CountKey {
            workspace,
            day,
            operation,
            channel,
            strategy: retrieval.strategy,
            plan: retrieval.plan,
            principal_kind: retrieval.principal_kind,
            principal_id: retrieval.principal_id,
        };
        self.counts.entry(key).or_default().add(&counts);
    }

    fn add_first(&mut self, key: FirstKey, first: First, known: &KnownFirsts) {
        if known.get(&key).is_some_and(|at| *at <= first.at) {
            return;
        }
        let held = self.firsts.entry(key).or_insert(first);
        if first.at < held.at {
            *held = first;
        }
    }

    /// Keeps only the sums of those workspaces.
    pub(crate) fn retain(&mut self, is_kept: impl Fn(WorkspaceId) -> bool) {
        self.counts.retain(|key, _| is_kept(key.workspace));
        self.latencies.retain(|key, _| is_kept(key.workspace));
        self.documents.retain(|key, _| is_kept(key.workspace));
        self.firsts.retain(|key, _| is_kept(key.workspace));
    }

    /// Rows that these sums make.
    pub(crate) fn len(&self) -> usize {
        self.counts.len() + self.latencies.len() + self.documents.len() + self.firsts.len()
    }
}
