//! What requests cost, as shares of a process's capacity ([`crate::admission`]).
//!
//! A unit is about a fifth of a millisecond of CPU, what a file takes that is read over HTTP ("Figures" in
//! benches/README.md). Orders of magnitude are enough: they decide how much is begun at once, and nothing else.

/// Units of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cost(u32);

impl Cost {
    /// Takes no place: probes, and what is let in once its body says what it costs.
    pub(crate) const FREE: Self = Self(0);
    /// One item, or what stands in memory.
    pub(crate) const POINT: Self = Self(1);
    /// A page of items: records that are filtered and sorted.
    pub(crate) const LIST: Self = Self(3);
    /// A page of the console, which asks several services.
    pub(crate) const PAGE: Self = Self(5);
    /// A write, with what indexes it afterwards.
    pub(crate) const WRITE: Self = Self(10);
    /// A search by words and meaning.
    pub(crate) const SEARCH: Self = Self(10);
    /// A script: from a `cat` to a regex over everything, about a search in the mean.
    pub(crate) const SCRIPT: Self = Self(10);
    /// A password that is hashed.
    pub(crate) const PASSWORD: Self = Self(40);
    /// Very many items at once: an archive, a table, a directory, all golden questions.
    pub(crate) const BULK: Self = Self(50);

    pub(crate) const fn units(self) -> u32 {
        self.0
    }
}
