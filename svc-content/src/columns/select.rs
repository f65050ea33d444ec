//! Which records a selection means.

use std::cmp::Ordering;

use super::bits::Bits;
use super::column::{Column, sort_key};
use super::{Columns, order};
use crate::model::{Condition, Filter, Selection, Test, Word};

impl Columns {
    /// The rows that are selected; `None` when these columns cannot tell.
    pub(super) fn selected(&self, selection: &Selection) -> Option<Bits> {
        let mut found = self.all(&selection.filters, self.live.clone())?;
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
            for row in alike(order, key.as_bytes(), |row| sort_key(all.text(row))) {
                if within.has(row) && all.text(row) == wanted {
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
            let more = column.found(described, &word.folded, &word.option_ids, &left);
            if !more.is_empty() {
                left.subtract(&more);
                found.unite(&more);
            }
        }
        found
    }
}

/// The rows of an order with one key.
fn alike<'a>(
    order: &'a order::Order,
    key: &'a [u8],
    of: impl Fn(u32) -> &'a [u8] + Copy + 'a,
) -> impl Iterator<Item = u32> + 'a {
    let first = order.first_from(move |row| match of(row).cmp(key) {
        Ordering::Less => Ordering::Less,
        Ordering::Equal | Ordering::Greater => Ordering::Greater,
    });
    first.take_while(move |row| of(*row) == key)
}

fn reads_texts(filter: &Filter) -> bool {
    match filter {
        Filter::All(branches) | Filter::Any(branches) => branches.iter().any(reads_texts),
        Filter::Is(condition) => matches!(condition.test, Test::TextHas(_)),
    }
}
