//! The FIFO queue of one tenant, with its total cost.

use std::collections::VecDeque;

use cairn_chassis::clock::Timestamp;

/// A queued request.
#[derive(Debug)]
pub(super) struct Waiting<W> {
    pub(super) number: u64,
    pub(super) units: u32,
    pub(super) since: Timestamp,
    pub(super) who: W,
}

/// Queued requests, oldest first.
#[derive(Debug)]
pub(super) struct Queue<W> {
    requests: VecDeque<Waiting<W>>,
    units: u32,
}

impl<W> Queue<W> {
    pub(super) const fn new() -> Self {
        Self { requests: VecDeque::new(), units: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.requests.len()
    }

    /// The cost of all of them.
    pub(super) const fn units(&self) -> u32 {
        self.units
    }

    pub(super) fn first(&self) -> Option<&Waiting<W>> {
        self.requests.front()
    }

    pub(super) fn push(&mut self, request: Waiting<W>) {
        self.units = self.units.saturating_add(request.units);
        self.requests.push_back(request);
    }

    pub(super) fn pop_first(&mut self) -> Option<Waiting<W>> {
        let first = self.requests.pop_front();
        self.without(first)
    }

    pub(super) fn pop_last(&mut self) -> Option<Waiting<W>> {
        let last = self.requests.pop_back();
        self.without(last)
    }

    /// Removes the request of that number; `false` if it is not queued.
    pub(super) fn remove(&mut self, number: u64) -> bool {
        let Some(place) = self.requests.iter().position(|request| request.number == number) else {
            return false;
        };
        let removed = self.requests.remove(place);
        self.without(removed).is_some()
    }

    fn without(&mut self, taken: Option<Waiting<W>>) -> Option<Waiting<W>> {
        let units = taken.as_ref().map_or(0, |taken| taken.units);
        self.units = self.units.saturating_sub(units);
        taken
    }
}
