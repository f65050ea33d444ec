//! Read-only outside knowledge: ingested documents and connected sources; and webhooks, which notify others of changes.
//!
//! The layers share names: `rpc/ingest.rs` decodes and authorizes, `ingest.rs` has the rules, `store/ingest.rs` the SQL,
//! `model/ingested.rs` the types. Rules know no SQL and no tonic; the store knows no rules, only the model. A test (`tests/layers.rs`)
//! enforces that order.

mod checks;
mod context;
mod credentials;
mod doctor;
mod documents;
mod error;
mod extracting;
mod extraction;
mod indexing;
mod ingest;
mod live;
mod locations;
mod model;
mod operator;
mod rpc;
mod runs;
mod scope;
mod service;
mod sources;
mod store;
mod tree;
mod usage;
mod webhooks;
mod work;

pub use self::doctor::index::examine_index;
pub use self::doctor::{examine, mend};
pub use self::error::Error;
pub use self::operator::{SourceSummary, SyncRequested, check_source, reseal, sources, sync_source};
pub use self::service::{ACCESS, Config, SERVICE_NAMES, Service};

/// The tables of this service, for tools that inspect a database.
pub const TABLES: cairn_chassis::sql::Tables =
    cairn_chassis::sql::Tables { service: store::SCHEMA, migrations: store::MIGRATIONS };

#[cfg(test)]
mod tests;
