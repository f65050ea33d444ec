//! Request costs in units of a process's capacity ([`crate::admission`]).
//!
//! A unit is about a fifth of a millisecond of CPU, the cost of reading a file over HTTP ("Figures" in
//! benches/README.md). Orders of magnitude are enough: costs only decide how much runs concurrently.

/// Units of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cost(u32);

impl Cost {
    /// Not admitted here: probes, and requests whose cost is known only once their body is parsed.
    pub(crate) const FREE: Self = Self(0);
    /// One item, or an in-memory value.
    pub(crate) const POINT: Self = Self(1);
    /// A page of items: filtered and sorted records.
    pub(crate) const LIST: Self = Self(3);
    /// A console page, which calls several services.
    pub(crate) const PAGE: Self = Self(5);
    /// A write, with the indexing it causes.
    pub(crate) const WRITE: Self = Self(10);
    /// A lexical and semantic search.
    pub(crate) const SEARCH: Self = Self(10);
    /// A script, from a `cat` to a regex over everything: on average about a search.
    pub(crate) const SCRIPT: Self = Self(10);
    /// A password hash.
    pub(crate) const PASSWORD: Self = Self(40);
    /// Bulk operations: an archive, a table, a directory, all golden questions.
    pub(crate) const BULK: Self = Self(50);

    pub(crate) const fn units(self) -> u32 {
        self.0
    }
}
