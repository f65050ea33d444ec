//! Read-your-writes for agents over MCP: an agent's next search sees its own last write without passing a
//! consistency token.
//!
//! A search waits for the position of its caller's last write, as if the caller had sent the consistency token back.
//! Positions are kept in this process only: an agent whose next request reaches another gateway sends the token
//! itself, or sees the write once the index has caught up.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use cairn_chassis::clock::{Clock, Timestamp};
use cairn_chassis::feed::{ChangeToken, Source};
use cairn_chassis::identity::Identity;
use cairn_proto::retrieval::v1::FeedPosition;
use quick_cache::sync::Cache;

use crate::change;

/// A working index never lags this far behind, so older writes need no wait.
const RETENTION: Duration = Duration::from_secs(10);
/// An entry is about 100 bytes.
const MAX_WRITERS: usize = 65_536;

/// The writing principal, a token or a grant; each belongs to one workspace.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Writer(Arc<str>);

impl Writer {
    pub(crate) fn of(identity: &Identity) -> Self {
        Self(format!("{}:{}", identity.principal.kind.as_str(), identity.principal.id).into())
    }

    #[cfg(test)]
    pub(crate) fn named(name: &str) -> Self {
        Self(name.into())
    }
}

/// The last write of each writer.
pub(crate) struct OwnWrites {
    clock: Arc<dyn Clock>,
    last: Cache<Writer, Arc<LastPositions>>,
}

/// The last write to each feed.
#[derive(Debug, Default)]
struct LastPositions([LastPosition; Source::ALL.len()]);

/// A writer's requests may run concurrently: the highest position wins.
#[derive(Debug, Default)]
struct LastPosition {
    position: AtomicU64,
    micros: AtomicI64,
}

impl LastPositions {
    fn of(&self, source: Source) -> Option<&LastPosition> {
        Source::ALL.into_iter().zip(&self.0).find(|(one, _)| *one == source).map(|(_, last)| last)
    }
}

cairn_chassis::debug_fields!(OwnWrites);

impl OwnWrites {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self::with_capacity(clock, MAX_WRITERS)
    }

    fn with_capacity(clock: Arc<dyn Clock>, writers: usize) -> Self {
        Self { clock, last: Cache::new(writers) }
    }

    /// Records a write.
    pub(crate) fn record(&self, writer: &Writer, change: ChangeToken) {
        let made = self.last.get_or_insert_with(writer, || Ok::<_, std::convert::Infallible>(Arc::default()));
        let Ok(last) = made;
        let Some(last) = last.of(change.source) else { return };
        last.position.fetch_max(change.position, Ordering::AcqRel);
        last.micros.fetch_max(self.clock.now().as_micros(), Ordering::AcqRel);
    }

    /// The feed positions a search of this writer must see: its last write to each feed within [`RETENTION`].
    pub(crate) fn of(&self, writer: &Writer) -> Vec<FeedPosition> {
        let Some(last) = self.last.get(writer) else { return Vec::new() };
        let now = self.clock.now();
        let of_late = |source: Source| {
            let last = last.of(source)?;
            let at = Timestamp::from_micros(last.micros.load(Ordering::Acquire));
            let position = last.position.load(Ordering::Acquire);
            let is_of_late = position > 0 && now.since(at) < RETENTION;
            is_of_late.then(|| change::of_token(ChangeToken { source, position }))
        };
        Source::ALL.into_iter().filter_map(of_late).collect()
    }
}

#[cfg(test)]
mod tests {
    use cairn_chassis::clock::ManualClock;

    use super::*;

    fn writer(name: &str) -> Writer {
        Writer::named(name)
    }

    fn writes(room: usize) -> (OwnWrites, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::new(Timestamp::from_seconds(1_800_000_000)));
        let shared: Arc<dyn Clock> = Arc::<ManualClock>::clone(&clock);
        (OwnWrites::with_capacity(shared, room), clock)
    }

    fn position(writes: &OwnWrites, name: &str) -> Option<u64> {
        writes.of(&writer(name)).first().map(|position| position.position)
    }

    #[test]
    fn the_latest_write_of_a_writer_is_remembered_for_ten_seconds() {
        let (writes, clock) = writes(8);
        assert_eq!(position(&writes, "a"), None);
        writes.record(&writer("a"), change::of_content(7));
        writes.record(&writer("a"), change::of_content(5));
        assert_eq!(position(&writes, "a"), Some(7), "an earlier write that ends later changes nothing");
        assert_eq!(position(&writes, "b"), None, "of another token");
        clock.advance(Duration::from_secs(9));
        assert_eq!(position(&writes, "a"), Some(7));
        clock.advance(Duration::from_secs(1));
        assert_eq!(position(&writes, "a"), None);
        writes.record(&writer("a"), change::of_content(9));
        assert_eq!(position(&writes, "a"), Some(9));
    }

    #[test]
    fn each_feed_is_remembered_and_room_is_bounded() {
        let (writes, _) = writes(8);
        writes.record(&writer("a"), ChangeToken { source: Source::Ingest, position: 7 });
        writes.record(&writer("a"), change::of_content(3));
        let told = writes.of(&writer("a")).into_iter().map(|told| (told.feed, told.position));
        assert_eq!(told.collect::<Vec<_>>(), [("content".to_owned(), 3), ("ingest".to_owned(), 7)]);
        for number in 0..1_000_u32 {
            writes.record(&writer(&number.to_string()), change::of_content(1));
        }
        assert!(writes.last.len() <= 16, "{}", writes.last.len());
        assert_eq!(position(&writes, "999"), Some(1), "the newest is kept");
    }
}
