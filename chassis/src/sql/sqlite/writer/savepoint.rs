//! What the parts of several callers stand behind, in one transaction.

use super::super::Ahead;

/// A savepoint of one of two names, which take turns: taken back is what stands behind the name, so what a caller never came to
/// set cannot be taken for that of the caller before it.
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

    /// Sets it. What stands behind the one before it is of the group then: that would have every page kept that it touched.
    pub(super) const fn set(self, is_behind_other: bool) -> Ahead {
        match (self, is_behind_other) {
            (Self::Odd, false) => Ahead { text: "SAVEPOINT odd", statements: 1 },
            (Self::Even, false) => Ahead { text: "SAVEPOINT even", statements: 1 },
            (Self::Odd, true) => Ahead { text: "RELEASE even; SAVEPOINT odd", statements: 2 },
            (Self::Even, true) => Ahead { text: "RELEASE odd; SAVEPOINT even", statements: 2 },
        }
    }

    /// Takes back what was done since it was set. It stays.
    pub(super) const fn take_back(self) -> &'static str {
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
