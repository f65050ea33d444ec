//! How busy the connections of a storage are, for whoever watches the process.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::time::MissedTickBehavior;

/// How often it is looked at.
const INTERVAL: Duration = Duration::from_secs(5);

/// The connections of a storage at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Usage {
    /// Lent.
    pub(super) used: u32,
    /// Open and lent to nobody.
    pub(super) idle: u32,
    /// As many as there may be.
    pub(super) most: u32,
}

impl Usage {
    /// Of several pools together.
    pub(super) fn sum(all: impl Iterator<Item = Self>) -> Self {
        all.fold(Self { used: 0, idle: 0, most: 0 }, |sum, one| Self {
            used: sum.used + one.used,
            idle: sum.idle + one.idle,
            most: sum.most + one.most,
        })
    }
}

/// Looks at a storage for as long as somebody has it.
pub(super) struct Watch {
    service: &'static str,
    look: Box<dyn Fn() -> Usage + Send + Sync>,
}

crate::debug_fields!(Watch { service });

impl Watch {
    /// Begins to look, inside the runtime. It ends some time after the last holder is gone.
    pub(super) fn begin(
        service: &'static str,
        look: impl Fn() -> Usage + Send + Sync + 'static,
    ) -> Arc<Self> {
        let watch = Arc::new(Self { service, look: Box::new(look) });
        tokio::spawn(go_on(Arc::downgrade(&watch)));
        watch
    }

    fn record(&self) {
        let Usage { used, idle, most } = (self.look)();
        let connections = |state: &'static str| metrics::gauge!("cairn_database_connections", "service" => self.service, "state" => state);
        connections("used").set(f64::from(used));
        connections("idle").set(f64::from(idle));
        metrics::gauge!("cairn_database_connections_max", "service" => self.service).set(f64::from(most));
    }
}

async fn go_on(watch: Weak<Watch>) {
    let mut looks = tokio::time::interval(INTERVAL);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        let Some(watch) = watch.upgrade() else { return };
        watch.record();
    }
}

/// That a transaction, or on SQLite a statement, has waited until it had a connection.
pub(super) fn record_wait(service: &'static str, waited: Duration) {
    metrics::histogram!("cairn_database_wait_seconds", "service" => service).record(waited.as_secs_f64());
}
