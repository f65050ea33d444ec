//! Calls of providers in tests.

use std::sync::Arc;
use std::time::Duration;

use cairn_chassis::clock::{Clock, ManualClock, Timestamp};
use cairn_chassis::outbound::Guard;
use serde_json::Value;

use crate::testing::MemoryLedger;
use crate::{Call, Ledger, Provider, ProviderKind, Reach};

/// 2026-11-23T12:00:00Z.
pub(crate) const NOW: Timestamp = Timestamp::from_seconds(1_795_435_200);

/// A guard that allows only loopback.
pub(crate) fn guard() -> Guard {
    Guard::new(&["127.0.0.0/8".parse().unwrap()]).unwrap()
}

/// A call with its ledger.
pub(crate) struct Caller {
    pub(crate) call: Call,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) ledger: Arc<MemoryLedger>,
    reach: Reach,
}

/// A call with a budget of requests.
pub(crate) fn counted(left: u32) -> Caller {
    let clock = Arc::new(ManualClock::new(NOW));
    let ledger = Arc::new(MemoryLedger::new(Arc::clone(&clock) as Arc<dyn Clock>, left));
    let call =
        Call::new(guard(), Arc::clone(&ledger) as Arc<dyn Ledger>, Arc::clone(&clock) as Arc<dyn Clock>);
    Caller { call, clock, ledger, reach: Reach::new(guard(), &[]) }
}

impl Caller {
    /// A call without a budget.
    pub(crate) fn new() -> Self {
        counted(u32::MAX)
    }

    /// A connection in that mode.
    pub(crate) fn connect(
        &self,
        kind: ProviderKind,
        settings: &Value,
        credentials: &Value,
        mode: &str,
    ) -> Box<dyn Provider> {
        crate::connect(kind, settings, Some(credentials), Some(mode.parse().unwrap()), &self.reach).unwrap()
    }

    /// The violations of settings, as paths and codes.
    pub(crate) fn violations(
        &self,
        kind: ProviderKind,
        settings: &Value,
        credentials: &Value,
    ) -> Vec<String> {
        let Err(violations) = crate::connect(kind, settings, Some(credentials), None, &self.reach) else {
            return Vec::new();
        };
        violations.into_iter().map(|violation| format!("{} {}", violation.path, violation.code)).collect()
    }

    /// A call with a deadline.
    pub(crate) fn hurried(&self, most: Duration) -> Call {
        self.call.with_deadline(tokio::time::Instant::now() + most)
    }
}
