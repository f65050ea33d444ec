//! What tests of providers, and of those who run them, share.

mod ledger;

pub use self::ledger::MemoryLedger;
