//! The interface between the driver and a deployment of either shape.

use std::fmt;

use crate::access::Access;
use crate::audit;
use crate::cluster::Cluster;
use crate::faults::Fault;
use crate::ledger::Violations;
use crate::numbers::Numbers;
use crate::single::{Single, Trouble};
use crate::storm::Targets;

/// A deployment into which faults are injected, several at a time.
pub(crate) trait Stage {
    /// The faults of this shape.
    type Fault: fmt::Display + 'static;

    /// The name in `seeds.txt`.
    const SHAPE: &'static str;
    /// The default duration of faults: long enough for a dozen.
    const DEFAULT_SECONDS: u64;

    fn access(&self) -> &Access;

    fn choose(&self, numbers: &mut Numbers) -> Self::Fault;

    /// What a fault affects: overlapping faults have disjoint targets.
    fn targets(fault: &Self::Fault) -> Targets;

    /// Injects a fault, and waits until it is over.
    async fn happen(&self, fault: &Self::Fault, violations: &Violations);

    /// Restarts processes that exited by themselves, as an orchestrator would. They may only exit during their start,
    /// because a dependency may have been unavailable.
    fn tend(&self, violations: &Violations);

    /// Stops it, and runs the doctor on its data.
    async fn check_data(&mut self, violations: &Violations);

    fn show_logs(&self);
}

impl Stage for Cluster {
    type Fault = Fault;

    const SHAPE: &'static str = "mesh";
    const DEFAULT_SECONDS: u64 = 45;

    fn access(&self) -> &Access {
        Self::access(self)
    }

    fn choose(&self, numbers: &mut Numbers) -> Fault {
        Fault::choose(numbers, self.index())
    }

    fn targets(fault: &Fault) -> Targets {
        fault.targets()
    }

    async fn happen(&self, fault: &Fault, violations: &Violations) {
        fault.happen(self, violations).await;
    }

    fn tend(&self, violations: &Violations) {
        Self::tend(self, violations);
    }

    async fn check_data(&mut self, violations: &Violations) {
        audit::databases(self, violations).await;
    }

    fn show_logs(&self) {
        Self::show_logs(self);
    }
}

impl Stage for Single {
    type Fault = Trouble;

    const SHAPE: &'static str = "single";
    const DEFAULT_SECONDS: u64 = 20;

    fn access(&self) -> &Access {
        Self::access(self)
    }

    fn choose(&self, numbers: &mut Numbers) -> Trouble {
        Trouble::choose(numbers)
    }

    fn targets(trouble: &Trouble) -> Targets {
        trouble.targets()
    }

    async fn happen(&self, trouble: &Trouble, _: &Violations) {
        trouble.happen(self).await;
    }

    fn tend(&self, violations: &Violations) {
        Self::tend(self, violations);
    }

    async fn check_data(&mut self, violations: &Violations) {
        if let Err(said) = self.stop().await {
            violations.note(format!("the data folder is not sound: {said}"));
        }
    }

    fn show_logs(&self) {
        self.show_log();
    }
}
