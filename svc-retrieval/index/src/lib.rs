//! Finds the chunks of documents by words and by meaning.
//!
//! A document is cut into chunks ([`chunk`]). An engine indexes their words ([`words`]) and vectors ([`vectors`]): [`embedded`] in
//! this process, [`qdrant`] in a server that several processes share. Everything here is derived data, which can be rebuilt from
//! the services that own the documents. This crate knows neither these owners nor how results are ranked.

pub mod chunk;
pub mod embedded;
mod engine;
mod error;
mod factory;
mod inspect;
mod model;
mod nearness;
pub mod qdrant;
mod query;
mod top_k;
mod tuning;
pub mod vectors;
pub mod words;

#[cfg(test)]
mod contract;

pub use self::embedded::contents::{IndexContents, StoredDocument};
pub use self::engine::Engine;
pub use self::error::Error;
pub use self::factory::{EngineFactory, FolderFactory, contents, current, damaged};
pub use self::inspect::{InspectRequest, Inspection, PieceCounts, QuestionWords, idf};
pub use self::model::{
    Batch, Candidates, ChunkId, Counts, Cursor, Cursors, EmbeddedChunk, Hit, IndexedChunk, IndexedDocument,
    ListQuery, Query, StoredChunk, sort_hits,
};
pub use self::query::ParsedQuery;
