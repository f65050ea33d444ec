//! What a workspace keeps.

/// What a write adds; negative what it takes away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Growth {
    pub(crate) files: i64,
    pub(crate) bytes: i64,
}

impl Growth {
    /// More content is stored.
    pub(crate) fn more_bytes(bytes: u64) -> Self {
        Self { bytes: i64::try_from(bytes).unwrap_or(i64::MAX), ..Self::default() }
    }

    /// Content is gone.
    pub(crate) fn less_bytes(bytes: u64) -> Self {
        Self { bytes: -Self::more_bytes(bytes).bytes, ..Self::default() }
    }

    /// A content was stored in the place of another one, and once more as a version.
    pub(crate) fn of_change(before: u64, after: u64) -> Self {
        let mut growth = Self::less_bytes(before);
        growth.add_bytes(after);
        growth.add_bytes(after);
        growth
    }

    /// What comes on top.
    pub(crate) fn add(&mut self, more: Self) {
        self.files = self.files.saturating_add(more.files);
        self.bytes = self.bytes.saturating_add(more.bytes);
    }

    /// Content was stored along with what this is already.
    pub(crate) fn add_bytes(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(Self::more_bytes(bytes).bytes);
    }
}

/// How much there is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
}
