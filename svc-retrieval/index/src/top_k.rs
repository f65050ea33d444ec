//! A bounded top-k heap.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::tuning::MAX_CANDIDATES;

/// The `limit` items with the highest scores so far.
pub(crate) struct TopK<T> {
    limit: usize,
    min_heap: BinaryHeap<Reverse<Scored<T>>>,
}

impl<T: Ord> TopK<T> {
    /// Keeps at most `limit`.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, min_heap: BinaryHeap::with_capacity(limit.min(MAX_CANDIDATES)) }
    }

    /// The score that an item must exceed to get in.
    pub(crate) fn threshold(&self) -> f32 {
        match self.min_heap.peek() {
            Some(Reverse(least)) if self.min_heap.len() >= self.limit => least.score,
            _ => f32::MIN,
        }
    }

    pub(crate) fn push(&mut self, score: f32, item: T) {
        if self.min_heap.len() < self.limit {
            self.min_heap.push(Reverse(Scored { score, item }));
            return;
        }
        if let Some(mut least) = self.min_heap.peek_mut()
            && score > least.0.score
        {
            *least = Reverse(Scored { score, item });
        }
    }

    /// The items with their scores, unordered.
    pub(crate) fn into_items(self) -> impl Iterator<Item = (f32, T)> {
        self.min_heap.into_iter().map(|Reverse(scored)| (scored.score, scored.item))
    }
}

/// Ordered by score, then by item: of equal scores the smaller item is better.
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
