//! Turns text into vectors. Nothing here knows of chunks, files, the index or how results are ranked.

use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;

#[cfg(test)]
mod contract;
#[cfg(feature = "transformer")]
mod draft;
mod embedders;
mod endpoint;
#[cfg(feature = "transformer")]
mod hub;
mod identity;
mod models;
mod pieces;
mod prefixes;
mod query;
#[cfg(feature = "transformer")]
mod record;
mod static_rows;
#[cfg(feature = "transformer")]
mod transformer;
mod unicode;
mod vector;
mod vocabulary;
mod word_piece;

pub use embedders::{Choice, Config, DEFAULT_HUB, Embedders, FetchedModel, folder_of};
pub use endpoint::{DEFAULT_BATCH, DEFAULT_PAUSE, DEFAULT_TIMEOUT, EndpointConfig, Spending};
pub use identity::EmbedderIdentity;
pub use models::{AddOptions, AddedModel, ModelError, ModelName, Models, Progress, TriedModel};
pub use pieces::{Affinity, QueryRows, Union, distinct};
pub use prefixes::{Prefixes, TextKind, prefix_fault};
pub use query::{DEFAULT_QUERY_LIMIT, EmbeddedQuery, QueryEmbedder};
pub use static_rows::StaticRows;

/// Why an embedder could not be made or could not embed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The model file is not what the embedder can read.
    #[error("the embedder cannot be used: {reason}")]
    Model {
        /// What is wrong with it, for the log.
        reason: String,
    },
    /// It does not answer, or is temporarily unavailable.
    #[error("the embedder does not answer: {reason}")]
    Unavailable {
        /// What happened, for the log.
        reason: String,
    },
    /// It rejects the request, or answers without vectors of these texts.
    #[error("the embedder refuses: {reason}")]
    Refused {
        /// What it said, for the log.
        reason: String,
    },
    /// The circuit breaker is open.
    #[error("the embedder failed repeatedly and is left alone for a moment")]
    Paused,
    /// It did not answer within the timeout of a search.
    #[error("the embedder did not answer within {limit:?}")]
    TooSlow {
        /// The timeout.
        limit: Duration,
    },
    /// A spending limit is reached.
    #[error("the embedder's limit of tokens a {window} is reached")]
    Spent {
        /// "minute" or "day".
        window: &'static str,
        /// When to retry.
        retry_after: Duration,
    },
}

impl Error {
    /// The message for callers, without internals.
    #[must_use]
    pub fn public_message(&self) -> &'static str {
        match self {
            Self::Model { .. } => "the embedding model cannot be used",
            Self::Unavailable { .. } => "the embedder does not answer",
            Self::Refused { .. } => "the embedder refuses to answer",
            Self::Paused => "the embedder failed repeatedly and is tried again in a moment",
            Self::TooSlow { .. } => "the embedder did not answer in time",
            Self::Spent { .. } => "the embedder's spending limit is reached",
        }
    }
}

/// An embedder that takes microseconds for each text and never fails: no I/O.
pub trait ImmediateEmbedder {
    /// As [`Embedder::embed`], for texts of either kind. A caller on a runtime thread keeps its batches small.
    fn embed_now(&self, texts: &[&str]) -> Vec<Vec<f32>>;

    /// As [`Embedder::rows`].
    fn rows(&self) -> Option<&StaticRows> {
        None
    }
}

/// A model that maps texts of similar meaning to vectors of similar direction.
#[async_trait]
pub trait Embedder: Send + Sync + Debug {
    /// Identifies the model and its version. Stored with the index: vectors of two names are not comparable.
    fn name(&self) -> &str;

    /// The length of every vector.
    fn dimensions(&self) -> usize;

    /// Where the model came from; stored with the index. Holds no secret.
    fn origin(&self) -> &str {
        "built-in"
    }

    /// The immediate interface, of an embedder that is fast enough to index a document together with its vectors. With any other
    /// one the words are indexed first and the vectors follow.
    fn immediate(&self) -> Option<&dyn ImmediateEmbedder> {
        None
    }

    /// The rows that its vectors are sums of, if they are: a second look compares them one by one.
    fn rows(&self) -> Option<&StaticRows> {
        None
    }

    /// Whether it is immediate.
    fn is_immediate(&self) -> bool {
        self.immediate().is_some()
    }

    /// One vector for each text, in their order. A vector has length 1, or is all zeros where the model finds
    /// nothing it knows in the text. The same text of the same kind always gives the same vector, whatever it is batched with.
    /// Models that were trained with a prefix for each kind give a text two vectors.
    async fn embed(&self, kind: TextKind, texts: &[&str]) -> Result<Vec<Vec<f32>>, Error>;
}
