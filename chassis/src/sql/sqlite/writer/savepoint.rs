//! The savepoints that separate the writes of several callers in one transaction.

use super::super::Prefix;

/// A savepoint with one of two alternating names. `ROLLBACK TO` a name that a caller never set fails, instead of rolling
/// back to the savepoint of the caller before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Savepoint {
    Odd,
    Even,
}

impl Savepoint {
    pub(super) const fn other(self) -> Self {
        match self {
            Self::Odd => Self::Even,
            Self::Even => Self::Odd,
        }
    }

    /// Sets it, and releases the previous one if that is still set: SQLite keeps the original of each page that was changed
    /// since an open savepoint.
    pub(super) const fn set(self, previous_is_set: bool) -> Prefix {
        match (self, previous_is_set) {
            (Self::Odd, false) => Prefix { text: "SAVEPOINT odd", statements: 1 },
            (Self::Even, false) => Prefix { text: "SAVEPOINT even", statements: 1 },
            (Self::Odd, true) => Prefix { text: "RELEASE even; SAVEPOINT odd", statements: 2 },
            (Self::Even, true) => Prefix { text: "RELEASE odd; SAVEPOINT even", statements: 2 },
        }
    }

    /// Rolls back what was written since it was set. The savepoint itself stays set.
    pub(super) const fn rollback(self) -> &'static str {
        match self {
            Self::Odd => "ROLLBACK TO odd",
            Self::Even => "ROLLBACK TO even",
        }
    }

    pub(super) const fn release(self) -> &'static str {
        match self {
            Self::Odd => "RELEASE odd",
            Self::Even => "RELEASE even",
        }
    }
}
