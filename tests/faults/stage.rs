//! What the driver needs of a deployment, in whichever shape it runs.

use crate::access::Access;
use crate::audit;
use crate::cluster::Cluster;
use crate::faults::Fault;
use crate::ledger::Violations;
use crate::numbers::Numbers;
use crate::single::{Single, Trouble};

/// A deployment that things happen to.
pub(crate) trait Stage {
    /// As it stands in `seeds.txt`.
    const SHAPE: &'static str;
    /// How long faults go on when nobody says: long enough for a dozen.
    const USUAL_SECONDS: u64;

    fn access(&self) -> &Access;

    /// Chooses a fault, tells it, lets it happen, and waits until it is over.
    async fn disturb(&mut self, numbers: &mut Numbers, announce: impl Fn(&str));

    /// Stops it, and has the doctor look at what it leaves.
    async fn look_over(&mut self, violations: &Violations);

    fn show_logs(&self);
}

impl Stage for Cluster {
    const SHAPE: &'static str = "mesh";
    const USUAL_SECONDS: u64 = 45;

    fn access(&self) -> &Access {
        Self::access(self)
    }

    async fn disturb(&mut self, numbers: &mut Numbers, announce: impl Fn(&str)) {
        let fault = Fault::choose(numbers);
        announce(&fault.to_string());
        fault.happen(self).await;
    }

    async fn look_over(&mut self, violations: &Violations) {
        audit::databases(self, violations).await;
    }

    fn show_logs(&self) {
        Self::show_logs(self);
    }
}

impl Stage for Single {
    const SHAPE: &'static str = "single";
    const USUAL_SECONDS: u64 = 20;

    fn access(&self) -> &Access {
        Self::access(self)
    }

    async fn disturb(&mut self, numbers: &mut Numbers, announce: impl Fn(&str)) {
        let trouble = Trouble::choose(numbers);
        announce(&trouble.to_string());
        trouble.happen(self).await;
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
