//! Turns text into vectors. Nothing here knows of chunks, files or the index.

use std::fmt::Debug;

use async_trait::async_trait;

#[cfg(test)]
mod contract;
mod static_rows;
mod unicode;
mod vocabulary;
mod word_piece;

pub use static_rows::StaticRows;

/// Why an embedder could not be made or could not embed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The model file is not what the embedder can read.
    #[error("embedding model cannot be read: {reason}")]
    Model {
        /// What is wrong with it, for the log.
        reason: String,
    },
}

/// A model which gives texts of like meaning vectors of like direction.
#[async_trait]
pub trait Embedder: Send + Sync + Debug {
    /// Identifies the model and its version. The index remembers it: vectors of two names are not comparable.
    fn name(&self) -> &str;

    /// The length of every vector.
    fn dimensions(&self) -> usize;

    /// One vector for each text, in their order. A vector has length 1, or is all zeros where the model finds
    /// nothing it knows in the text. The same text always gives the same vector, whatever it is batched with.
    ///
    /// An embedder may compute within the call, so a caller on a runtime thread keeps its batches small.
    async fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Error>;
}
