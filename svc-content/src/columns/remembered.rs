//! Which names hold a text, for texts that are slow to look for and were asked for lately: short ones, of which no signature
//! tells, and those that very many names hold.

use std::collections::VecDeque;
use std::sync::Arc;

use memchr::memmem;

use super::bits::Bits;

/// So many texts are remembered.
const MOST: usize = 32;

/// The rows whose names hold a text, in the groups in which they are listed.
#[derive(Debug, Clone, Default)]
pub(super) struct Selected {
    /// Names that are the text.
    same: Bits,
    /// Names that begin with it and go on.
    beginning: Bits,
    /// All others.
    others: Bits,
}

impl Selected {
    const GROUPS: usize = 3;

    /// Of rows whose names hold a text; `name` tells the name of a row.
    pub(super) fn of<'a>(holding: Bits, text: &[u8], name: impl Fn(u32) -> &'a [u8]) -> Self {
        let (mut same, mut beginning) = (Bits::default(), Bits::default());
        for row in holding.rows() {
            let name = name(row);
            if !name.starts_with(text) {
                continue;
            }
            let group = if name.len() == text.len() { &mut same } else { &mut beginning };
            group.add(row);
        }
        let mut others = holding;
        others.subtract(&same);
        others.subtract(&beginning);
        Self { same, beginning, others }
    }

    /// Those of the rows that pass a test.
    pub(super) fn passing(&self, test: impl Fn(u32) -> bool) -> Self {
        let passing = |group: &Bits| {
            let mut passing = Bits::default();
            group.rows().filter(|row| test(*row)).for_each(|row| passing.add(row));
            passing
        };
        Self { same: passing(&self.same), beginning: passing(&self.beginning), others: passing(&self.others) }
    }

    /// In the order in which they are listed.
    pub(super) const fn groups(&self) -> [&Bits; Self::GROUPS] {
        [&self.same, &self.beginning, &self.others]
    }

    /// How many rows there are.
    pub(super) fn total(&self) -> u64 {
        self.groups().iter().map(|group| group.count()).sum()
    }

    fn set(&mut self, row: u32, name: Option<&[u8]>, text: &[u8]) {
        for group in [&mut self.same, &mut self.beginning, &mut self.others] {
            group.remove(row);
        }
        let Some(name) = name else { return };
        if name == text {
            self.same.add(row);
        } else if name.starts_with(text) {
            self.beginning.add(row);
        } else if memmem::find(name, text).is_some() {
            self.others.add(row);
        }
    }
}

/// What was found lately, the latest last.
#[derive(Debug, Default)]
pub(super) struct Remembered(VecDeque<(String, Arc<Selected>)>);

impl Remembered {
    /// What holds a text, if that was asked for lately.
    pub(super) fn get(&mut self, text: &str) -> Option<Arc<Selected>> {
        let place = self.0.iter().position(|(known, _)| known == text)?;
        let entry = self.0.remove(place)?;
        let selected = Arc::clone(&entry.1);
        self.0.push_back(entry);
        Some(selected)
    }

    /// Remembers what holds a text, and forgets what was asked for the longest ago.
    pub(super) fn put(&mut self, text: &str, selected: &Arc<Selected>) {
        // Two requests may have looked at the same time.
        self.0.retain(|(known, _)| known != text);
        if self.0.len() >= MOST {
            self.0.pop_front();
        }
        self.0.push_back((text.to_owned(), Arc::clone(selected)));
    }

    /// Takes a row for what its name is now; `None` for one that is gone.
    pub(super) fn follow(&mut self, row: u32, name: Option<&[u8]>) {
        for (text, selected) in &mut self.0 {
            Arc::make_mut(selected).set(row, name, text.as_bytes());
        }
    }

    /// What all of them take when one set of rows takes so many bytes.
    pub(super) const fn most_bytes(of_set: usize) -> usize {
        MOST * Selected::GROUPS * of_set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_are_remembered() {
        let mut remembered = Remembered::default();
        let text = |number: usize| format!("text {number}");
        for number in 0..MOST {
            remembered.put(&text(number), &Arc::default());
        }
        assert!(remembered.get(&text(0)).is_some());
        remembered.put(&text(MOST), &Arc::default());
        assert!(remembered.get(&text(0)).is_some(), "it was asked for just now");
        assert!(remembered.get(&text(1)).is_none());
        remembered.put(&text(2), &Arc::default());
        assert_eq!(remembered.0.len(), MOST);
    }
}
