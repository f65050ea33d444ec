//! Keeps the best of many, without sorting them all.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::tuning::MOST_CANDIDATES;

/// The items of the greatest scores so far.
pub(crate) struct Best<T> {
    limit: usize,
    least_first: BinaryHeap<Reverse<Scored<T>>>,
}

impl<T: Ord> Best<T> {
    /// Keeps at most `limit`.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, least_first: BinaryHeap::with_capacity(limit.min(MOST_CANDIDATES)) }
    }

    /// What a score must exceed to be kept.
    pub(crate) fn threshold(&self) -> f32 {
        match self.least_first.peek() {
            Some(Reverse(least)) if self.least_first.len() >= self.limit => least.score,
            _ => f32::MIN,
        }
    }

    pub(crate) fn offer(&mut self, score: f32, item: T) {
        if self.least_first.len() < self.limit {
            self.least_first.push(Reverse(Scored { score, item }));
            return;
        }
        if let Some(mut least) = self.least_first.peek_mut()
            && score > least.0.score
        {
            *least = Reverse(Scored { score, item });
        }
    }

    /// What was kept with its scores, in no order.
    pub(crate) fn into_items(self) -> impl Iterator<Item = (f32, T)> {
        self.least_first.into_iter().map(|Reverse(scored)| (scored.score, scored.item))
    }
}

/// Ordered by the score; of equal ones the earlier item is the better.
struct Scored<T> {
    score: f32,
    item: T,
}

impl<T: Ord> Ord for Scored<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score.total_cmp(&other.score).then_with(|| other.item.cmp(&self.item))
    }
}

impl<T: Ord> PartialOrd for Scored<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: Ord> PartialEq for Scored<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T: Ord> Eq for Scored<T> {}
