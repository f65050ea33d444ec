//! Records the results of requests: the latency of each kind, and unexpected responses.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

/// How many failures are printed.
const MAX_FAILURES: usize = 20;

/// A kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Write,
    Edit,
    Read,
    TrashAndRestore,
    Remove,
    Search,
    Script,
    Record,
    Memory,
    Ingest,
    Sync,
    SignIn,
}

impl Kind {
    pub(crate) const ALL: [Self; 12] = [
        Self::Write,
        Self::Edit,
        Self::Read,
        Self::TrashAndRestore,
        Self::Remove,
        Self::Search,
        Self::Script,
        Self::Record,
        Self::Memory,
        Self::Ingest,
        Self::Sync,
        Self::SignIn,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Edit => "edit",
            Self::Read => "read",
            Self::TrashAndRestore => "trash and restore",
            Self::Remove => "remove",
            Self::Search => "search",
            Self::Script => "script",
            Self::Record => "record",
            Self::Memory => "memory",
            Self::Ingest => "ingest",
            Self::Sync => "sync",
            Self::SignIn => "sign in",
        }
    }

    /// Whether it adds to data with a retention period, such as the feed.
    const fn is_write(self) -> bool {
        !matches!(self, Self::Read | Self::Search | Self::Script | Self::SignIn)
    }
}

/// A request with the expected response.
#[derive(Debug, Clone, Copy)]
struct Timing {
    kind: Kind,
    /// Since the start.
    at: Duration,
    took: Duration,
}

/// Shared by all clients.
#[derive(Debug)]
pub(crate) struct Meter {
    began: Instant,
    timings: RefCell<Vec<Timing>>,
    /// Answered with 503 or 504: the machine is overloaded.
    late: Cell<usize>,
    failures: RefCell<Vec<String>>,
}

/// The latency of one kind in one half of the run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Latency {
    pub(crate) count: usize,
    pub(crate) median: Duration,
    pub(crate) worst_of_hundred: Duration,
}

impl Meter {
    pub(crate) fn new() -> Self {
        Self {
            began: Instant::now(),
            timings: RefCell::default(),
            late: Cell::default(),
            failures: RefCell::default(),
        }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    pub(crate) fn took(&self, kind: Kind, took: Duration) {
        self.timings.borrow_mut().push(Timing { kind, at: self.elapsed(), took });
    }

    pub(crate) fn was_late(&self) {
        self.late.set(self.late.get() + 1);
    }

    pub(crate) fn fail(&self, what: String) {
        let mut failures = self.failures.borrow_mut();
        if failures.len() < MAX_FAILURES {
            failures.push(what);
        }
    }

    /// The number of writes.
    pub(crate) fn writes(&self) -> usize {
        self.timings.borrow().iter().filter(|timing| timing.kind.is_write()).count()
    }

    pub(crate) fn answered(&self) -> usize {
        self.timings.borrow().len()
    }

    pub(crate) fn late(&self) -> usize {
        self.late.get()
    }

    pub(crate) fn failures(&self) -> Vec<String> {
        self.failures.borrow().clone()
    }

    /// The latency of each kind in both halves of the run.
    pub(crate) fn latencies(&self) -> BTreeMap<Kind, [Latency; 2]> {
        let half = self.elapsed() / 2;
        let of = |kind: Kind, is_later: bool| {
            let timings = self.timings.borrow();
            let fitting = timings.iter().filter(|one| one.kind == kind && (one.at >= half) == is_later);
            latency(fitting.map(|one| one.took).collect())
        };
        Kind::ALL.into_iter().map(|kind| (kind, [of(kind, false), of(kind, true)])).collect()
    }
}

fn latency(mut took: Vec<Duration>) -> Latency {
    took.sort_unstable();
    let at =
        |percent: usize| took.get(took.len() * percent / 100).or(took.last()).copied().unwrap_or_default();
    Latency { count: took.len(), median: at(50), worst_of_hundred: at(99) }
}
