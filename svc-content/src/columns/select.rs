//! Which records a selection means.

use std::cmp::Ordering;
use std::sync::Arc;

use super::Columns;
use super::bits::Bits;
use super::column::{Column, sort_key};
use super::order::Order;
use crate::model::{Condition, Filter, MAX_KEY_CHARS, Selection, Test, Word};

impl Columns {
    /// The rows that are selected; `None` when these columns cannot tell.
    pub(super) fn selected(&self, selection: &Selection) -> Option<Arc<Bits>> {
        if selection.is_everything() {
            return Some(Arc::new(self.live.clone()));
        }
        let known = self.selections().get(selection);
        let rows = match known {
            Some((rows, changed)) if changed.is_empty() => return Some(rows),
            Some((rows, changed)) => self.carried_on(selection, &rows, &changed)?,
            None => self.among(selection, self.live.clone())?,
        };
        let rows = Arc::new(rows);
        self.selections().put(selection, &rows);
        Some(rows)
    }

    /// The rows of a selection that were selected before some of them have changed.
    fn carried_on(&self, selection: &Selection, before: &Bits, changed: &[u32]) -> Option<Bits> {
        let (mut now, mut looked_at) = (Bits::none_of(&self.live), Bits::none_of(&self.live));
        now.unite(before);
        for row in changed {
            now.remove(*row);
            if self.live.has(*row) {
                looked_at.add(*row);
            }
        }
        now.unite(&self.among(selection, looked_at)?);
        Some(now)
    }

    /// Those of some rows that are selected.
    fn among(&self, selection: &Selection, within: Bits) -> Option<Bits> {
        let mut found = self.all(&selection.filters, within)?;
        for word in &selection.words {
            found = self.word(word, &found);
        }
        Some(found)
    }

    /// What is read soonest narrows the rest.
    fn all(&self, filters: &[Filter], mut within: Bits) -> Option<Bits> {
        for is_costly in [false, true] {
            for filter in filters.iter().filter(|filter| reads_texts(filter) == is_costly) {
                within = self.filter(filter, within)?;
            }
        }
        Some(within)
    }

    fn filter(&self, filter: &Filter, within: Bits) -> Option<Bits> {
        match filter {
            Filter::All(branches) => self.all(branches, within),
            Filter::Any(branches) => {
                let mut found = Bits::none_of(&within);
                let mut left = within;
                for branch in branches {
                    let more = self.filter(branch, left.clone())?;
                    left.subtract(&more);
                    found.unite(&more);
                }
                Some(found)
            }
            Filter::Is(condition) => self.condition(condition, within),
        }
    }

    fn condition(&self, condition: &Condition, mut within: Bits) -> Option<Bits> {
        let number = self.number_of(condition.property)?;
        let (column, described) = (self.columns.get(number)?, self.described.get(number)?);
        let passing = match (&condition.test, column) {
            (Test::TextIs(texts), Column::Text(_)) => self.equal(number, texts, &within)?,
            (test, column) => column.passing(described, test, &within)?,
        };
        if !condition.is_negated {
            return Some(passing);
        }
        within.subtract(&passing);
        Some(within)
    }

    /// Rows with one of these texts, by their order.
    fn equal(&self, number: usize, texts: &[(String, Option<String>)], within: &Bits) -> Option<Bits> {
        let (column, order) = (self.columns.get(number)?, self.orders.get(number)?);
        let Column::Text(all) = column else { return None };
        let mut found = Bits::none_of(within);
        for (key, whole) in texts {
            let wanted = whole.as_ref().unwrap_or(key).as_bytes();
            // What is shorter than any key that was cut has nothing behind it.
            let is_whole = whole.is_none() && key.len() < MAX_KEY_CHARS;
            for row in alike(order, key.as_bytes(), |row| sort_key(all.text(row))) {
                if within.has(row) && (is_whole || all.text(row) == wanted) {
                    found.add(row);
                }
            }
        }
        Some(found)
    }

    /// Those of some rows in which a word is found.
    fn word(&self, word: &Word, within: &Bits) -> Bits {
        let mut found = Bits::none_of(within);
        let mut left = within.clone();
        for (column, described) in self.columns.iter().zip(&self.described) {
            if left.is_empty() {
                break;
            }
            let more = column.found(described, &word.folded, &word.option_ids, &left);
            if let Some(more) = more {
                left.subtract(&more);
                found.unite(&more);
            }
        }
        found
    }
}

/// The rows of an order with one key.
fn alike<'a>(order: &'a Order, key: &[u8], of: impl Fn(u32) -> &'a [u8]) -> impl Iterator<Item = u32> {
    let from = order.place(|row| of(row).cmp(key));
    let until = order.place(|row| match of(row).cmp(key) {
        Ordering::Less | Ordering::Equal => Ordering::Less,
        Ordering::Greater => Ordering::Greater,
    });
    order.rows_from(from).take(until.saturating_sub(from))
}

fn reads_texts(filter: &Filter) -> bool {
    match filter {
        Filter::All(branches) | Filter::Any(branches) => branches.iter().any(reads_texts),
        Filter::Is(condition) => matches!(condition.test, Test::TextHas(_)),
    }
}
