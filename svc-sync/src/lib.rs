//! Outside trees that become workspace content: directory sync, and imports of archives.
//!
//! The layers share names: `rpc/syncs.rs` decodes and authorizes, `syncs.rs` has the rules, `store/` the SQL, `model/` the types. `plan`
//! (of a directory), `decision` (of an archive, which a child process reads: `reading`) and `reversal` are pure and decide what a run
//! writes; `runs/` executes it through svc-content's API (`content`), in batches that are logged before and settled after they are sent.

mod content;
mod context;
mod decision;
mod delegation;
mod doctor;
mod error;
mod imports;
mod manifest;
mod model;
mod packed;
mod plan;
mod reading;
mod reversal;
mod rpc;
mod run_state;
mod runs;
mod scope;
mod service;
mod store;
mod syncs;

pub use self::doctor::{examine, mend};
pub use self::error::Error;
pub use self::reading::{IMPORT_COMMAND, import_child_main};
pub use self::service::{ACCESS, Config, SERVICE_NAMES, Service, Upstreams};

/// The tables of this service, for tools that inspect a database.
pub const TABLES: cairn_chassis::sql::Tables =
    cairn_chassis::sql::Tables { service: store::SCHEMA, migrations: store::MIGRATIONS };

#[cfg(test)]
mod tests;
