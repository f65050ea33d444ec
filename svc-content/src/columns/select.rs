//! Evaluation of a selection to the set of its rows.

use std::cmp::Ordering;
use std::sync::Arc;

use super::Columns;
use super::bitmap::Bitmap;
use super::column::{Column, sort_key};
use super::order::Order;
use crate::model::{Condition, Filter, MAX_KEY_CHARS, Selection, Test, Word};

impl Columns {
    /// The selected rows; `None` if the columns cannot evaluate the selection.
    pub(super) fn selected(&self, selection: &Selection) -> Option<Arc<Bitmap>> {
        if selection.is_unfiltered() {
            return Some(Arc::new(self.live.clone()));
        }
        let cached = self.selections().get(selection);
        let rows = match cached {
            Some((rows, changed)) if changed.is_empty() => return Some(rows),
            Some((rows, changed)) => self.refreshed(selection, &rows, &changed)?,
            None => self.evaluate(selection, self.live.clone())?,
        };
        let rows = Arc::new(rows);
        self.selections().insert(selection, &rows);
        Some(rows)
    }

    /// Brings a cached result up to date by evaluating only the rows that have changed since.
    fn refreshed(&self, selection: &Selection, before: &Bitmap, changed: &[u32]) -> Option<Bitmap> {
        let (mut now, mut pending) = (Bitmap::empty_like(&self.live), Bitmap::empty_like(&self.live));
        now.union_with(before);
        for row in changed {
            now.remove(*row);
            if self.live.contains(*row) {
                pending.add(*row);
            }
        }
        now.union_with(&self.evaluate(selection, pending)?);
        Some(now)
    }

    /// The rows of `within` that are selected.
    fn evaluate(&self, selection: &Selection, within: Bitmap) -> Option<Bitmap> {
        let mut found = self.all(&selection.filters, within)?;
        for word in &selection.words {
            found = self.word(word, &found);
        }
        Some(found)
    }

    /// The intersection of all filters; cheap ones run first to narrow the input of those that scan texts.
    fn all(&self, filters: &[Filter], mut within: Bitmap) -> Option<Bitmap> {
        for is_costly in [false, true] {
            for filter in filters.iter().filter(|filter| reads_texts(filter) == is_costly) {
                within = self.filter(filter, within)?;
            }
        }
        Some(within)
    }

    fn filter(&self, filter: &Filter, within: Bitmap) -> Option<Bitmap> {
        match filter {
            Filter::All(branches) => self.all(branches, within),
            Filter::Any(branches) => {
                let mut found = Bitmap::empty_like(&within);
                let mut left = within;
                for branch in branches {
                    let more = self.filter(branch, left.clone())?;
                    left.subtract(&more);
                    found.union_with(&more);
                }
                Some(found)
            }
            Filter::Is(condition) => self.condition(condition, within),
        }
    }

    fn condition(&self, condition: &Condition, mut within: Bitmap) -> Option<Bitmap> {
        let number = self.number_of(condition.property)?;
        let (column, schema) = (self.columns.get(number)?, self.schemas.get(number)?);
        let passing = match (&condition.test, column) {
            (Test::TextIs(texts), Column::Text(_)) => self.equal(number, texts, &within)?,
            (test, column) => column.passing(schema, test, &within)?,
        };
        if !condition.is_negated {
            return Some(passing);
        }
        within.subtract(&passing);
        Some(within)
    }

    /// Rows with one of these texts, by binary search in the sorted order.
    fn equal(&self, number: usize, texts: &[(String, Option<String>)], within: &Bitmap) -> Option<Bitmap> {
        let (column, order) = (self.columns.get(number)?, self.orders.get(number)?);
        let Column::Text(all) = column else { return None };
        let mut found = Bitmap::empty_like(within);
        for (key, whole) in texts {
            let wanted = whole.as_ref().unwrap_or(key).as_bytes();
            // A key below the maximum length was not truncated, so equal keys mean equal texts.
            let is_whole = whole.is_none() && key.len() < MAX_KEY_CHARS;
            for row in rows_with_key(order, key.as_bytes(), |row| sort_key(all.text(row))) {
                if within.contains(row) && (is_whole || all.text(row) == wanted) {
                    found.add(row);
                }
            }
        }
        Some(found)
    }

    /// The rows of `within` that a search word matches in any column.
    fn word(&self, word: &Word, within: &Bitmap) -> Bitmap {
        let mut found = Bitmap::empty_like(within);
        let mut left = within.clone();
        for (column, schema) in self.columns.iter().zip(&self.schemas) {
            if left.is_empty() {
                break;
            }
            let more = column.found(schema, &word.folded, &word.option_ids, &left);
            if let Some(more) = more {
                left.subtract(&more);
                found.union_with(&more);
            }
        }
        found
    }
}

/// The rows of an order with a given key.
fn rows_with_key<'a>(
    order: &'a Order,
    key: &[u8],
    of: impl Fn(u32) -> &'a [u8],
) -> impl Iterator<Item = u32> {
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
