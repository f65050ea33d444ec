//! Reranking of the best chunks by a cross-encoder. There is none by default.

mod endpoint;

#[cfg(test)]
mod contract;

use std::fmt;

use async_trait::async_trait;

pub use self::endpoint::{Endpoint, EndpointConfig, EndpointError};

/// Why a reranker failed. The texts are for the log: they contain no key.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be reached, or is too slow.
    #[error("the reranker does not answer: {0}")]
    Unreachable(String),
    /// It answered with an error.
    #[error("the reranker answers with the status {0}")]
    Status(u16),
    /// Its answer is not what it should be.
    #[error("the reranker's answer cannot be used: {0}")]
    Answer(&'static str),
}

/// A model that scores how well texts answer a query.
#[async_trait]
pub trait Reranker: Send + Sync + fmt::Debug {
    /// One number from 0 to 1 for each text, in their order: 1 answers the query. No texts give no numbers. The same
    /// texts get the same numbers, whatever their order.
    async fn rerank(&self, query: &str, texts: &[&str]) -> Result<Vec<f32>, Error>;
}
