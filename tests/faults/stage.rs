//! What the driver needs of a deployment, in whichever shape it runs.

use std::fmt;

use crate::access::Access;
use crate::audit;
use crate::cluster::Cluster;
use crate::faults::Fault;
use crate::ledger::Violations;
use crate::numbers::Numbers;
use crate::single::{Single, Trouble};
use crate::storm::Targets;

/// A deployment that things happen to, several at a time.
pub(crate) trait Stage {
    /// What may happen to it.
    type Fault: fmt::Display + 'static;

    /// As it stands in `seeds.txt`.
    const SHAPE: &'static str;
    /// How long faults go on when nobody says: long enough for a dozen.
    const USUAL_SECONDS: u64;

    fn access(&self) -> &Access;

    fn choose(&self, numbers: &mut Numbers) -> Self::Fault;

    /// What a fault happens to: of two that go on at the same time none happens to what the other one does.
    fn targets(fault: &Self::Fault) -> Targets;

    /// Lets a fault happen, and waits until it is over.
    async fn happen(&self, fault: &Self::Fault, violations: &Violations);

    /// Starts what has ended by itself again, as whoever runs it in operation does. Only at its start may it have ended: what it
    /// needs may have been away.
    fn tend(&self, violations: &Violations);

    /// Stops it, and has the doctor look at what it leaves.
    async fn look_over(&mut self, violations: &Violations);

    fn show_logs(&self);
}

impl Stage for Cluster {
    type Fault = Fault;

    const SHAPE: &'static str = "mesh";
    const USUAL_SECONDS: u64 = 45;

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

    async fn look_over(&mut self, violations: &Violations) {
        audit::databases(self, violations).await;
    }

    fn show_logs(&self) {
        Self::show_logs(self);
    }
}

impl Stage for Single {
    type Fault = Trouble;

    const SHAPE: &'static str = "single";
    const USUAL_SECONDS: u64 = 20;

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

    async fn look_over(&mut self, violations: &Violations) {
        if let Err(said) = self.stop().await {
            violations.note(format!("the data folder is not sound: {said}"));
        }
    }

    fn show_logs(&self) {
        self.show_log();
    }
}
