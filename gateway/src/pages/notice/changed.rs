//! The notice of a bulk change.

use std::fmt;
use std::str::FromStr;

use crate::pages::words;

/// The kind of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Moved,
    Tagged,
    Trashed,
    Restored,
}

impl Change {
    const ALL: [(Self, &'static str); 4] =
        [(Self::Moved, "m"), (Self::Tagged, "t"), (Self::Trashed, "d"), (Self::Restored, "r")];

    fn letter(self) -> &'static str {
        Self::ALL.into_iter().find(|(one, _)| *one == self).map(|(_, letter)| letter).unwrap_or_default()
    }
}

/// The kind and number of changes, and the write id for an undo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Changed {
    change: Change,
    count: u64,
    /// Two numbers separated by a dot, the only form accepted from a cookie.
    write: (i64, u64),
}

impl Changed {
    pub(crate) fn read(change: Change, count: u64, write: &str) -> Option<Self> {
        let (at, position) = write.split_once('.')?;
        Some(Self { change, count, write: (at.parse().ok()?, position.parse().ok()?) })
    }

    pub(crate) fn write(&self) -> String {
        format!("{}.{}", self.write.0, self.write.1)
    }

    pub(super) fn sentence(&self) -> String {
        match (self.change, self.count) {
            (Change::Moved, count) => format!("{} moved.", words::count(count, "item", "items")),
            (Change::Tagged, count) => {
                format!("The tags of {} are changed.", words::count(count, "file", "files"))
            }
            (Change::Trashed, 1) => "Moved to trash.".to_owned(),
            (Change::Trashed, count) => format!("{} moved to trash.", words::count(count, "item", "items")),
            (Change::Restored, count) => format!("{} restored.", words::count(count, "item", "items")),
        }
    }
}

impl fmt::Display for Changed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}.{}", self.change.letter(), self.count, self.write())
    }
}

/// The text is no such notice.
#[derive(Debug)]
pub(crate) struct NoChange;

impl FromStr for Changed {
    type Err = NoChange;

    fn from_str(text: &str) -> Result<Self, NoChange> {
        let mut parts = text.splitn(3, '.');
        let (letter, count, write) = (parts.next(), parts.next(), parts.next());
        let change = Change::ALL.into_iter().find(|(_, known)| Some(*known) == letter);
        let (change, _) = change.ok_or(NoChange)?;
        let count = count.and_then(|count| count.parse().ok()).ok_or(NoChange)?;
        write.and_then(|write| Self::read(change, count, write)).ok_or(NoChange)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_says_numbers_only() {
        for (change, _) in Change::ALL {
            let changed = Changed::read(change, 1_204, "1800000000000000.7").unwrap();
            assert_eq!(changed.to_string().parse::<Changed>().unwrap(), changed);
            assert!(changed.sentence().contains("1\u{202f}204"), "{}", changed.sentence());
        }
        for odd in ["", "m", "m.1", "m.1.2", "x.1.2.3", "m.x.2.3", "m.1.2.3.4", "m.1.<b>.3", "m.-1.2.3"] {
            assert!(odd.parse::<Changed>().is_err(), "{odd}");
        }
    }
}
