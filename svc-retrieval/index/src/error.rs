//! Why an index failed, whichever engine it is of.

use std::error::Error as StdError;

use tantivy::TantivyError;

/// Why an index failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An option cannot be used.
    #[error("{0}")]
    Config(String),
    /// Another process has the folder open.
    #[error("the index folder is in use by another process")]
    InUse,
    /// An index of no dimensions was asked for.
    #[error("an index needs vectors of at least one dimension")]
    NoDimensions,
    /// A vector of another length than the index's.
    #[error("a vector has {given} dimensions where {expected} are expected")]
    Dimensions {
        /// The index's dimensions.
        expected: usize,
        /// The vector's.
        given: usize,
    },
    /// The folder cannot be read or written.
    #[error("cannot use the index folder")]
    Io(#[from] std::io::Error),
    /// What is kept as JSON, such as the positions beside the changes, could not be written.
    #[error("cannot encode what the index notes")]
    Encode(#[from] serde_json::Error),
    /// The engine in this process failed.
    #[error("the index engine failed")]
    Engine(#[from] TantivyError),
    /// The engine is elsewhere and cannot be used now. It may work in a moment, without anybody changing anything here.
    #[error("{0}")]
    Unavailable(#[source] Box<dyn StdError + Send + Sync>),
    /// Work off the async threads did not come back.
    #[error("a task of the index ended early: {0}")]
    Task(#[from] tokio::task::JoinError),
    /// What was applied before is no longer in the engine's storage, since another process changed it. The engine's
    /// cursors say by now where it stands; the caller begins there again.
    #[error("what was applied before is no longer in the index; indexing goes on from where it is")]
    Outrun,
    /// The engine is elsewhere and does not do what it is asked, or answers something that cannot be used.
    #[error("{0}")]
    Remote(#[source] Box<dyn StdError + Send + Sync>),
}

impl Error {
    /// Whether the folder's disk refused: it is full, broken or away. The same may work in a moment, since what a commit could not
    /// write is read from the feed again. Threads of the engine say it in words only, and have no other reason to end early.
    pub fn is_of_the_folder(&self) -> bool {
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
        assert!(Error::Io(full()).is_of_the_folder());
        assert!(Error::Engine(TantivyError::IoError(Arc::new(full()))).is_of_the_folder());
        assert!(!Error::Engine(TantivyError::Poisoned).is_of_the_folder());
        assert!(!Error::InUse.is_of_the_folder());
    }
}
