//! The usage of a workspace.

/// The change of usage by a write; negative for removals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Growth {
    pub(crate) documents: i64,
    pub(crate) bytes: i64,
}

impl Growth {
    /// Adds another change.
    pub(crate) const fn add(&mut self, more: Self) {
        self.documents = self.documents.saturating_add(more.documents);
        self.bytes = self.bytes.saturating_add(more.bytes);
    }
}

/// The current usage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) documents: u64,
    pub(crate) bytes: u64,
}
