//! New ids: UUIDv7 (RFC 9562), which sort by creation time.

use std::sync::Arc;

use uuid::{Builder, Uuid};

use crate::clock::Clock;
use crate::entropy::Entropy;

const MICROS_PER_MILLI: i64 = 1_000;

/// Generates ids from a clock and randomness.
#[derive(Debug, Clone)]
pub struct IdSource {
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
}

impl IdSource {
    /// A source on that clock and randomness.
    pub fn new(clock: Arc<dyn Clock>, entropy: Arc<dyn Entropy>) -> Self {
        Self { clock, entropy }
    }

    /// A new id.
    pub fn next<T: From<Uuid>>(&self) -> T {
        let millis = u64::try_from(self.clock.now().as_micros() / MICROS_PER_MILLI).unwrap_or(0);
        let mut random = [0_u8; 10];
        self.entropy.fill(&mut random);
        T::from(Builder::from_unix_timestamp_millis(millis, &random).into_uuid())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use cairn_proto::ids::FileId;

    use super::*;
    use crate::clock::{ManualClock, Timestamp};
    use crate::entropy::SeededEntropy;

    #[test]
    fn ids_sort_by_time() {
        let clock = Arc::new(ManualClock::new(Timestamp::from_seconds(1_800_000_000)));
        let shared: Arc<dyn Clock> = Arc::<ManualClock>::clone(&clock);
        let ids = IdSource::new(shared, Arc::new(SeededEntropy::new(1)));
        let first: FileId = ids.next();
        clock.advance(Duration::from_millis(1));
        let second: FileId = ids.next();
        assert!(first < second);
        assert_eq!(first.0.get_version_num(), 7);
    }
}
