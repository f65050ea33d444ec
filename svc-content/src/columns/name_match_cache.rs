//! An LRU cache of slow name searches: those for texts too short for trigram signatures, and those that very many names match.

use std::collections::VecDeque;
use std::sync::Arc;

use memchr::memmem;

use super::bitmap::Bitmap;

/// Cached searches.
const MAX_ENTRIES: usize = 32;

/// The rows whose names contain a text, in ranking groups.
#[derive(Debug, Clone, Default)]
pub(super) struct NameMatches {
    /// Names that are equal to the text.
    exact: Bitmap,
    /// Names that start with it and are longer.
    prefix: Bitmap,
    /// Names that contain it elsewhere.
    inner: Bitmap,
}

impl NameMatches {
    const GROUPS: usize = 3;

    /// Splits rows whose names contain a text into groups; `name` returns the name of a row.
    pub(super) fn of<'a>(matching: Bitmap, text: &[u8], name: impl Fn(u32) -> &'a [u8]) -> Self {
        let (mut exact, mut prefix) = (Bitmap::default(), Bitmap::default());
        for row in matching.rows() {
            let name = name(row);
            if !name.starts_with(text) {
                continue;
            }
            let group = if name.len() == text.len() { &mut exact } else { &mut prefix };
            group.add(row);
        }
        let mut inner = matching;
        inner.subtract(&exact);
        inner.subtract(&prefix);
        Self { exact, prefix, inner }
    }

    /// The rows that satisfy a predicate.
    pub(super) fn filter(&self, test: impl Fn(u32) -> bool) -> Self {
        let filter = |group: &Bitmap| {
            let mut passing = Bitmap::default();
            group.rows().filter(|row| test(*row)).for_each(|row| passing.add(row));
            passing
        };
        Self { exact: filter(&self.exact), prefix: filter(&self.prefix), inner: filter(&self.inner) }
    }

    /// The groups, best match first.
    pub(super) const fn groups(&self) -> [&Bitmap; Self::GROUPS] {
        [&self.exact, &self.prefix, &self.inner]
    }

    /// How many rows match.
    pub(super) fn total(&self) -> u64 {
        self.groups().iter().map(|group| group.count()).sum()
    }

    fn set(&mut self, row: u32, name: Option<&[u8]>, text: &[u8]) {
        for group in [&mut self.exact, &mut self.prefix, &mut self.inner] {
            group.remove(row);
        }
        let Some(name) = name else { return };
        if name == text {
            self.exact.add(row);
        } else if name.starts_with(text) {
            self.prefix.add(row);
        } else if memmem::find(name, text).is_some() {
            self.inner.add(row);
        }
    }
}

/// The entries, most recently used last.
#[derive(Debug, Default)]
pub(super) struct NameMatchCache(VecDeque<(String, Arc<NameMatches>)>);

impl NameMatchCache {
    /// The cached matches of a text.
    pub(super) fn get(&mut self, text: &str) -> Option<Arc<NameMatches>> {
        let place = self.0.iter().position(|(cached, _)| cached == text)?;
        let entry = self.0.remove(place)?;
        let matches = Arc::clone(&entry.1);
        self.0.push_back(entry);
        Some(matches)
    }

    /// Caches the matches of a text, and evicts the least recently used one if full.
    pub(super) fn insert(&mut self, text: &str, matches: &Arc<NameMatches>) {
        // Two requests may have searched for it concurrently.
        self.0.retain(|(cached, _)| cached != text);
        if self.0.len() >= MAX_ENTRIES {
            self.0.pop_front();
        }
        self.0.push_back((text.to_owned(), Arc::clone(matches)));
    }

    /// Updates all entries for a renamed row; `None` for a deleted one.
    pub(super) fn update(&mut self, row: u32, name: Option<&[u8]>) {
        for (text, matches) in &mut self.0 {
            Arc::make_mut(matches).set(row, name, text.as_bytes());
        }
    }

    /// The maximum memory use in bytes, if one bitmap takes `bitmap` bytes.
    pub(super) const fn max_bytes(bitmap: usize) -> usize {
        MAX_ENTRIES * NameMatches::GROUPS * bitmap
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_are_remembered() {
        let mut cache = NameMatchCache::default();
        let text = |number: usize| format!("text {number}");
        for number in 0..MAX_ENTRIES {
            cache.insert(&text(number), &Arc::default());
        }
        assert!(cache.get(&text(0)).is_some());
        cache.insert(&text(MAX_ENTRIES), &Arc::default());
        assert!(cache.get(&text(0)).is_some(), "it was asked for just now");
        assert!(cache.get(&text(1)).is_none());
        cache.insert(&text(2), &Arc::default());
        assert_eq!(cache.0.len(), MAX_ENTRIES);
    }
}
