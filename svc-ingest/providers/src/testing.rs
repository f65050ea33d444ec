//! What tests of providers, and of those who run them, share.

mod ledger;
mod shelf;

pub use self::ledger::MemoryLedger;
pub use self::shelf::{Requests, Shelf};
