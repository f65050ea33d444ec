//! Which rows were selected lately, so that the next page of a question, and the same question again, look for nothing.
//!
//! What changes meanwhile is noted for each of them: only the rows that have changed are looked at when it is asked for again.

use std::collections::VecDeque;
use std::sync::Arc;

use super::bits::Bits;
use crate::model::{Condition, Filter, Selection, Test, Word};

/// So many selections are remembered.
const MOST: usize = 8;
/// A selection by more bytes of texts, ids and numbers than this is not remembered: what a filter may hold has no bound of its own.
const MOST_BYTES: usize = 4 * 1024;
/// With more rows changed than this, or than there are, a selection is made anew.
const MOST_CHANGED: usize = 1_024;

/// What was selected lately, the latest last.
#[derive(Debug, Default)]
pub(super) struct Selections(VecDeque<Known>);

#[derive(Debug)]
struct Known {
    filters: Vec<Filter>,
    words: Vec<Word>,
    rows: Arc<Bits>,
    /// Rows that have changed since.
    changed: Vec<u32>,
}

impl Known {
    fn is_of(&self, selection: &Selection) -> bool {
        self.words == selection.words && self.filters == selection.filters
    }
}

impl Selections {
    /// The rows that a selection was of when it was asked for, and those that have changed since.
    pub(super) fn get(&mut self, selection: &Selection) -> Option<(Arc<Bits>, Vec<u32>)> {
        let place = self.0.iter().position(|known| known.is_of(selection))?;
        let known = self.0.remove(place)?;
        let answer = (Arc::clone(&known.rows), known.changed.clone());
        self.0.push_back(known);
        Some(answer)
    }

    /// Remembers the rows of a selection, and forgets what was asked for the longest ago.
    pub(super) fn put(&mut self, selection: &Selection, rows: &Arc<Bits>) {
        // Two requests may have looked at the same time.
        self.0.retain(|known| !known.is_of(selection));
        if bytes_of(selection) > MOST_BYTES {
            return;
        }
        if self.0.len() >= MOST {
            self.0.pop_front();
        }
        let (filters, words) = (selection.filters.clone(), selection.words.clone());
        self.0.push_back(Known { filters, words, rows: Arc::clone(rows), changed: Vec::new() });
    }

    /// Notes that one of so many rows has changed.
    pub(super) fn follow(&mut self, row: u32, rows: usize) {
        let most = rows.min(MOST_CHANGED);
        self.0.retain_mut(|known| {
            known.changed.push(row);
            known.changed.len() <= most
        });
    }

    /// Forgets all of them.
    pub(super) fn forget(&mut self) {
        self.0.clear();
    }

    /// What all of them take of so many rows, when one set of them takes so many bytes.
    pub(super) fn most_bytes(of_set: usize, rows: usize) -> usize {
        MOST * (MOST_BYTES + of_set + rows.min(MOST_CHANGED) * size_of::<u32>())
    }
}

/// What a selection is made by.
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
            everything: 9,
            filters: Vec::new(),
            words: vec![Word { folded: format!("word {word}"), option_ids: Vec::new() }],
            orders: Vec::new(),
        }
    }

    #[test]
    fn what_takes_much_is_not_remembered() {
        let mut selections = Selections::default();
        let long = Selection {
            words: vec![Word { folded: "x".repeat(MOST_BYTES), option_ids: Vec::new() }],
            ..search(0)
        };
        selections.put(&long, &Arc::default());
        assert!(selections.get(&long).is_none());
    }

    #[test]
    fn the_latest_are_remembered_with_what_has_changed() {
        let mut selections = Selections::default();
        (0..MOST).for_each(|word| selections.put(&search(word), &Arc::default()));
        selections.follow(7, 9_000);
        assert_eq!(selections.get(&search(0)).map(|(_, changed)| changed), Some(vec![7]));
        selections.put(&search(MOST), &Arc::default());
        assert!(selections.get(&search(0)).is_some(), "it was asked for just now");
        assert!(selections.get(&search(1)).is_none());
        (0..MOST_CHANGED as u32).for_each(|row| selections.follow(row, 9_000));
        assert!(selections.get(&search(0)).is_none(), "too much has changed");
        assert!(selections.get(&search(MOST)).is_some());
        selections.forget();
        assert!(selections.get(&search(MOST)).is_none());
    }
}
