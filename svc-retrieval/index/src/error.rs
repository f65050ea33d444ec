//! The error type of all engines.

use std::error::Error as StdError;

use tantivy::TantivyError;

/// Why an index failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An option is invalid.
    #[error("{0}")]
    Config(String),
    /// Another process has the folder open.
    #[error("the index folder is in use by another process")]
    InUse,
    /// An index of zero dimensions was requested.
    #[error("an index needs vectors of at least one dimension")]
    NoDimensions,
    /// A vector has the wrong number of dimensions.
    #[error("a vector has {given} dimensions where {expected} are expected")]
    Dimensions {
        /// The index's dimensions.
        expected: usize,
        /// The vector's dimensions.
        given: usize,
    },
    /// The folder cannot be read or written.
    #[error("cannot use the index folder")]
    Io(#[from] std::io::Error),
    /// Metadata, such as the cursors, cannot be encoded as or decoded from JSON.
    #[error("cannot encode what the index notes")]
    Encode(#[from] serde_json::Error),
    /// The embedded engine failed.
    #[error("the index engine failed")]
    Engine(#[from] TantivyError),
    /// A remote engine is unavailable. This is transient: the call can be retried.
    #[error("{0}")]
    Unavailable(#[source] Box<dyn StdError + Send + Sync>),
    /// A blocking task panicked or was cancelled.
    #[error("a task of the index ended early: {0}")]
    Task(#[from] tokio::task::JoinError),
    /// The engine's storage no longer contains everything that was applied, since another process changed it. The engine's cursors have
    /// been refreshed; the caller starts again from there.
    #[error("what was applied before is no longer in the index; indexing goes on from where it is")]
    CursorsBehind,
    /// A remote engine rejected a request or returned an unusable response.
    #[error("{0}")]
    Remote(#[source] Box<dyn StdError + Send + Sync>),
}

impl Error {
    /// Whether the disk of the folder failed: full, broken or detached. This may be transient: what a commit could not write is read from
    /// the feed again. Indexing threads report I/O errors only as text, and have no other reason to fail.
    pub fn is_disk_failure(&self) -> bool {
        matches!(
            self,
            Self::Io(_)
                | Self::Engine(
                    TantivyError::IoError(_)
                        | TantivyError::OpenDirectoryError(_)
                        | TantivyError::OpenReadError(_)
                        | TantivyError::OpenWriteError(_)
                        | TantivyError::ErrorInThread(_)
                )
        )
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_disk_that_refuses_is_told_apart() {
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        assert!(Error::Io(full()).is_disk_failure());
        assert!(Error::Engine(TantivyError::IoError(Arc::new(full()))).is_disk_failure());
        assert!(!Error::Engine(TantivyError::Poisoned).is_disk_failure());
        assert!(!Error::InUse.is_disk_failure());
    }
}
