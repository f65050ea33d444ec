//! An LRU cache of selection results, so that the next page of a query, and a repeated query, evaluate nothing.
//!
//! Each entry records the rows that have changed since it was evaluated, so that a hit evaluates only those again.

use std::collections::VecDeque;
use std::sync::Arc;

use super::bitmap::Bitmap;
use crate::model::{Condition, Filter, Selection, Test, Word};

/// Cached selections.
const MAX_ENTRIES: usize = 8;
/// A selection whose key takes more bytes than this is not cached, as filters have no size limit of their own.
const MAX_BYTES: usize = 4 * 1024;
/// An entry with more changed rows than this, or than the table has, is evicted.
const MAX_CHANGED: usize = 1_024;

/// The entries, most recently used last.
#[derive(Debug, Default)]
pub(super) struct SelectionCache(VecDeque<Entry>);

#[derive(Debug)]
struct Entry {
    filters: Vec<Filter>,
    words: Vec<Word>,
    rows: Arc<Bitmap>,
    /// Rows that have changed since `rows` was evaluated.
    changed: Vec<u32>,
}

impl Entry {
    fn matches(&self, selection: &Selection) -> bool {
        self.words == selection.words && self.filters == selection.filters
    }
}

impl SelectionCache {
    /// The cached result of a selection, and the rows that have changed since.
    pub(super) fn get(&mut self, selection: &Selection) -> Option<(Arc<Bitmap>, Vec<u32>)> {
        let place = self.0.iter().position(|entry| entry.matches(selection))?;
        let entry = self.0.remove(place)?;
        let cached = (Arc::clone(&entry.rows), entry.changed.clone());
        self.0.push_back(entry);
        Some(cached)
    }

    /// Caches the result of a selection, and evicts the least recently used one if full.
    pub(super) fn insert(&mut self, selection: &Selection, rows: &Arc<Bitmap>) {
        // Two requests may have evaluated it concurrently.
        self.0.retain(|entry| !entry.matches(selection));
        if bytes_of(selection) > MAX_BYTES {
            return;
        }
        if self.0.len() >= MAX_ENTRIES {
            self.0.pop_front();
        }
        let (filters, words) = (selection.filters.clone(), selection.words.clone());
        self.0.push_back(Entry { filters, words, rows: Arc::clone(rows), changed: Vec::new() });
    }

    /// Marks a row as changed in every entry; `rows` is the number of rows in the table.
    pub(super) fn mark_changed(&mut self, row: u32, rows: usize) {
        let most = rows.min(MAX_CHANGED);
        self.0.retain_mut(|entry| {
            entry.changed.push(row);
            entry.changed.len() <= most
        });
    }

    /// Evicts all entries.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// The maximum memory use in bytes, for a table of `rows` rows whose bitmaps take `bitmap` bytes each.
    pub(super) fn max_bytes(bitmap: usize, rows: usize) -> usize {
        MAX_ENTRIES * (MAX_BYTES + bitmap + rows.min(MAX_CHANGED) * size_of::<u32>())
    }
}

/// The bytes of a selection's key.
fn bytes_of(selection: &Selection) -> usize {
    let options = |word: &Word| word.option_ids.iter().map(String::len).sum::<usize>();
    let words = selection.words.iter().map(|word| size_of::<Word>() + word.folded.len() + options(word));
    words.chain(selection.filters.iter().map(bytes_of_filter)).sum()
}

fn bytes_of_filter(filter: &Filter) -> usize {
    match filter {
        Filter::All(parts) | Filter::Any(parts) => parts.iter().map(bytes_of_filter).sum(),
        Filter::Is(condition) => size_of::<Condition>() + bytes_of_test(&condition.test),
    }
}

fn bytes_of_test(test: &Test) -> usize {
    match test {
        Test::TextIs(texts) => {
            texts.iter().map(|(key, whole)| key.len() + whole.as_ref().map_or(0, String::len)).sum()
        }
        Test::TextHas(part) => part.len(),
        Test::KeyIs(keys) => keys.iter().map(String::len).sum(),
        Test::NumberIs(numbers) => size_of_val(numbers.as_slice()),
        Test::Visible { folders, .. } => size_of_val(folders.as_slice()),
        Test::Present { .. } | Test::Between { .. } => 0,
    }
}

#[cfg(test)]
mod tests {
    use cairn_proto::ids::{DatabaseId, WorkspaceId};
    use uuid::Uuid;

    use super::*;

    fn search(word: usize) -> Selection {
        let id = Uuid::from_u128(1);
        Selection {
            workspace: WorkspaceId(id),
            database: DatabaseId(id),
            total_records: 9,
            filters: Vec::new(),
            words: vec![Word { folded: format!("word {word}"), option_ids: Vec::new() }],
            orders: Vec::new(),
        }
    }

    #[test]
    fn what_takes_much_is_not_remembered() {
        let mut selections = SelectionCache::default();
        let long = Selection {
            words: vec![Word { folded: "x".repeat(MAX_BYTES), option_ids: Vec::new() }],
            ..search(0)
        };
        selections.insert(&long, &Arc::default());
        assert!(selections.get(&long).is_none());
    }

    #[test]
    fn the_latest_are_remembered_with_what_has_changed() {
        let mut selections = SelectionCache::default();
        (0..MAX_ENTRIES).for_each(|word| selections.insert(&search(word), &Arc::default()));
        selections.mark_changed(7, 9_000);
        assert_eq!(selections.get(&search(0)).map(|(_, changed)| changed), Some(vec![7]));
        selections.insert(&search(MAX_ENTRIES), &Arc::default());
        assert!(selections.get(&search(0)).is_some(), "it was asked for just now");
        assert!(selections.get(&search(1)).is_none());
        (0..MAX_CHANGED as u32).for_each(|row| selections.mark_changed(row, 9_000));
        assert!(selections.get(&search(0)).is_none(), "too much has changed");
        assert!(selections.get(&search(MAX_ENTRIES)).is_some());
        selections.clear();
        assert!(selections.get(&search(MAX_ENTRIES)).is_none());
    }
}
