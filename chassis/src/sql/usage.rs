//! Metrics of the connection pools of a storage.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::time::MissedTickBehavior;

/// How often the gauges are set.
const INTERVAL: Duration = Duration::from_secs(5);

/// The connections of a storage at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Usage {
    /// Acquired by callers.
    pub(super) used: u32,
    /// Open and free.
    pub(super) idle: u32,
    /// The limit of the pool.
    pub(super) max: u32,
}

impl Usage {
    /// Of several pools together.
    pub(super) fn sum(all: impl Iterator<Item = Self>) -> Self {
        all.fold(Self { used: 0, idle: 0, max: 0 }, |sum, one| Self {
            used: sum.used + one.used,
            idle: sum.idle + one.idle,
            max: sum.max + one.max,
        })
    }
}

/// Samples the usage of a storage for as long as a handle to it is held.
pub(super) struct UsageReporter {
    service: &'static str,
    sample: Box<dyn Fn() -> Usage + Send + Sync>,
}

crate::debug_fields!(UsageReporter { service });

impl UsageReporter {
    /// Starts the sampling task; it needs a runtime. The task ends at its next tick after the last handle is dropped.
    pub(super) fn start(
        service: &'static str,
        sample: impl Fn() -> Usage + Send + Sync + 'static,
    ) -> Arc<Self> {
        let reporter = Arc::new(Self { service, sample: Box::new(sample) });
        tokio::spawn(report(Arc::downgrade(&reporter)));
        reporter
    }

    fn record(&self) {
        let Usage { used, idle, max } = (self.sample)();
        let connections = |state: &'static str| metrics::gauge!("cairn_database_connections", "service" => self.service, "state" => state);
        connections("used").set(f64::from(used));
        connections("idle").set(f64::from(idle));
        metrics::gauge!("cairn_database_connections_max", "service" => self.service).set(f64::from(max));
    }
}

async fn report(reporter: Weak<UsageReporter>) {
    let mut ticks = tokio::time::interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(reporter) = reporter.upgrade() else { return };
        reporter.record();
    }
}

/// Records how long a transaction, or on SQLite a statement, has waited for a connection.
pub(super) fn record_wait(service: &'static str, waited: Duration) {
    metrics::histogram!("cairn_database_wait_seconds", "service" => service).record(waited.as_secs_f64());
}
