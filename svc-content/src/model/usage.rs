//! The usage of a workspace.

/// The growth by a write; negative for what it removes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Growth {
    pub(crate) files: i64,
    pub(crate) bytes: i64,
}

impl Growth {
    /// Of content that is added.
    pub(crate) fn more_bytes(bytes: u64) -> Self {
        Self { bytes: i64::try_from(bytes).unwrap_or(i64::MAX), ..Self::default() }
    }

    /// Of content that is removed.
    pub(crate) fn less_bytes(bytes: u64) -> Self {
        Self { bytes: -Self::more_bytes(bytes).bytes, ..Self::default() }
    }

    /// Of a content that replaces another one and is stored once more as a version.
    pub(crate) fn of_change(before: u64, after: u64) -> Self {
        let mut growth = Self::less_bytes(before);
        growth.add_bytes(after);
        growth.add_bytes(after);
        growth
    }

    /// Adds another growth.
    pub(crate) fn add(&mut self, more: Self) {
        self.files = self.files.saturating_add(more.files);
        self.bytes = self.bytes.saturating_add(more.bytes);
    }

    /// Adds content to the growth.
    pub(crate) fn add_bytes(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(Self::more_bytes(bytes).bytes);
    }
}

/// The usage of a workspace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
}
