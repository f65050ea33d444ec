//! The source of truth of everything that a workspace edits: folders, files, their bodies and the change feed.
//!
//! A request is found by one word: `rpc/files.rs` decodes and authorizes, `files.rs` has the rules, `store/files.rs`
//! the SQL, `model/file.rs` the types. Rules know no SQL and no tonic; the store knows no rules, only the model. A
//! test (`tests/layers.rs`) enforces that order of modules. Nothing here knows HTTP or how documents are searched.

mod activity;
mod assets;
mod batch;
mod change;
mod changes;
mod checks;
mod columns;
mod context;
mod database_cache;
mod databases;
mod doctor;
mod documents;
mod error;
mod files;
mod filter;
mod folders;
mod locations;
mod memories;
mod model;
mod names;
mod outside;
mod overview;
mod past;
mod records;
mod removal;
mod retention;
mod rpc;
mod scope;
mod service;
mod store;
mod trash;
mod tree;
mod usage;
mod versions;

pub use self::assets::{AssetLocation, Bucket, IfUnmounted, UnknownLocation};
pub use self::doctor::index::examine_index;
pub use self::doctor::{Copies, examine, mend};
pub use self::error::Error;
pub use self::service::{ACCESS, Config, SERVICE_NAMES, Service};

/// The tables of this service, to inspect them in a database.
pub const TABLES: cairn_chassis::sql::Tables =
    cairn_chassis::sql::Tables { service: store::SCHEMA, migrations: store::MIGRATIONS };

/// Selects every object of every asset, as workspace, object and size, to copy them.
pub const STORED_OBJECTS: &str = store::assets::ALL_OBJECTS;

#[cfg(test)]
mod tests;
