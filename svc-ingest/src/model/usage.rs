//! What a workspace keeps.

/// What a write adds; negative what it takes away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Growth {
    pub(crate) documents: i64,
    pub(crate) bytes: i64,
}

impl Growth {
    /// What comes on top.
    pub(crate) const fn add(&mut self, more: Self) {
        self.documents = self.documents.saturating_add(more.documents);
        self.bytes = self.bytes.saturating_add(more.bytes);
    }
}

/// How much there is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) documents: u64,
    pub(crate) bytes: u64,
}
