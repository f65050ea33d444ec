//! How long the index has been behind the feeds, for the metrics.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use cairn_proto::domain::Feed;
use tokio::time::Instant;

use super::{FeedState, Indexer};

/// The head of a feed at a moment; not applied yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    position: u64,
    since: Instant,
}

impl FeedState {
    /// A lower bound of how long known changes have waited. The head is sampled, and the next sample is taken only when that
    /// position is applied: so a feed with constant writes does not look like a stalled one.
    fn lag(&self, cursor: u64, now: Instant) -> Duration {
        let head = self.head.load(Ordering::Acquire);
        let mut mark = self.mark.lock().unwrap_or_else(PoisonError::into_inner);
        if mark.is_none_or(|mark| cursor >= mark.position) {
            *mark = (cursor < head).then_some(Mark { position: head, since: now });
        }
        mark.map_or(Duration::ZERO, |mark| now.saturating_duration_since(mark.since))
    }
}

impl Indexer {
    /// The largest lag of a workspace, for each feed. To be called periodically: each call measures from the sample of an earlier
    /// one.
    pub(crate) fn lags(&self) -> Vec<(Feed, Duration)> {
        let states: Vec<_> = {
            let feeds = self.0.feeds.lock().unwrap_or_else(PoisonError::into_inner);
            feeds.iter().map(|(key, state)| (*key, Arc::clone(state))).collect()
        };
        let now = Instant::now();
        let lag_of = |feed: Feed| {
            let of_feed = states.iter().filter(|((of, _), _)| *of == feed);
            of_feed
                .map(|((_, workspace), state)| {
                    state.lag(self.0.index.cursor(feed.as_str(), workspace.0), now)
                })
                .max()
                .unwrap_or_default()
        };
        self.0.owners.iter().map(|owner| (owner.feed, lag_of(owner.feed))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feed_that_moves_is_not_behind_and_one_that_stands_still_is() {
        let state = FeedState::default();
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let lag = |head: u64, cursor: u64, seconds: u64| {
            state.head.store(head, Ordering::Release);
            state.lag(cursor, at(seconds)).as_secs()
        };
        assert_eq!(lag(10, 10, 0), 0);
        // Always a little behind, and what was there at the last look is applied by the next.
        assert_eq!(lag(20, 15, 5), 0);
        assert_eq!(lag(30, 25, 10), 0);
        // From here on nothing is applied.
        assert_eq!(lag(40, 25, 15), 5);
        assert_eq!(lag(50, 29, 20), 10);
        assert_eq!(lag(50, 50, 25), 0);
    }
}
