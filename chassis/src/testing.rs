//! Shared test support: identities, every storage engine that is installed, and deterministic simulation.
//!
//! Behind the feature `testing`, which no production build enables.

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
