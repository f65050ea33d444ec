use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use cairn_chassis::clock::{Clock, Timestamp};

use crate::{Fault, Ledger};

/// An in-memory ledger.
#[derive(Debug)]
pub struct MemoryLedger {
    clock: Arc<dyn Clock>,
    account: Mutex<Account>,
}

#[derive(Debug)]
struct Account {
    left: u32,
    reserved: u32,
    not_before: Option<Timestamp>,
}

impl MemoryLedger {
    /// A ledger with a budget of requests.
    pub fn new(clock: Arc<dyn Clock>, left: u32) -> Self {
        Self { clock, account: Mutex::new(Account { left, reserved: 0, not_before: None }) }
    }

    /// The number of reserved requests.
    pub fn reserved(&self) -> u32 {
        self.account().reserved
    }

    /// Until when the provider is rate limited.
    pub fn not_before(&self) -> Option<Timestamp> {
        self.account().not_before
    }

    fn account(&self) -> MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Ledger for MemoryLedger {
    async fn reserve(&self) -> Result<(), Fault> {
        let now = self.clock.now();
        let mut account = self.account();
        if let Some(until) = account.not_before.filter(|until| now < *until) {
            return Err(Fault::Waiting { until });
        }
        account.left = account.left.checked_sub(1).ok_or(Fault::Budget)?;
        account.reserved += 1;
        Ok(())
    }

    async fn hold(&self, until: Timestamp) -> Result<(), Fault> {
        self.account().not_before = Some(until);
        Ok(())
    }
}
