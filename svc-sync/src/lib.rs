//! Outside trees that become workspace content: directory sync.
//!
//! A request finds its way by one word: `rpc/syncs.rs` decodes and authorizes, `syncs.rs` has the rules, `store/` the SQL,
//! `model/` what they are about. `plan` and `reversal` decide what a run writes and touch nothing; `runs/` carries it out,
//! in batches that it notes before and settles after, through content's own API (`content`).

mod content;
mod context;
mod delegation;
mod doctor;
mod error;
mod manifest;
mod model;
mod packed;
mod plan;
mod reversal;
mod rpc;
mod runs;
mod scope;
mod service;
mod store;
mod syncs;

pub use self::doctor::examine;
pub use self::error::Error;
pub use self::service::{ACCESS, Config, SERVICE_NAMES, Service, Upstreams};

#[cfg(test)]
mod tests;
