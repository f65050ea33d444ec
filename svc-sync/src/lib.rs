//! Outside trees that become workspace content: directory sync, and imports of archives.
//!
//! A request finds its way by one word: `rpc/syncs.rs` decodes and authorizes, `syncs.rs` has the rules, `store/` the SQL,
//! `model/` what they are about. `plan` (of a directory), `decision` (of an archive, which `reading` has a child read) and
//! `reversal` decide what a run writes and touch nothing; `runs/` carries it out, in batches that it notes before and settles
//! after, through content's own API (`content`).

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
mod runs;
mod scope;
mod service;
mod standing;
mod store;
mod syncs;

pub use self::doctor::{examine, mend};
pub use self::error::Error;
pub use self::reading::{IMPORT_COMMAND, import_child_main};
pub use self::service::{ACCESS, Config, SERVICE_NAMES, Service, Upstreams};

/// The tables of this service, for whoever asks how they stand in a database.
pub const TABLES: cairn_chassis::sql::Tables =
    cairn_chassis::sql::Tables { service: store::SCHEMA, migrations: store::MIGRATIONS };

#[cfg(test)]
mod tests;
