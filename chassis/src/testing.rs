//! What tests of every crate share: identities, each storage engine that this machine has, and seeded walks.
//!
//! Behind the feature `testing`; no process that serves has it.

pub mod certificates;
mod engines;
pub mod identity;
mod modules;
pub mod ports;
pub mod postgres;
pub mod redis;
pub mod server;
pub mod simulation;

pub use self::engines::{TestDb, engines, tables_left};
pub use self::modules::Modules;
