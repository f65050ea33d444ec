//! Test doubles for providers and for their callers.

mod ledger;
mod shelf;

pub use self::ledger::MemoryLedger;
pub use self::shelf::{Requests, Shelf};
