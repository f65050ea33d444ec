//! The result of a write.

/// A written item, and its position in the change feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Written<T> {
    pub(crate) item: T,
    pub(crate) position: u64,
}
