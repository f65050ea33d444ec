//! A confirmed chunk, with the components of its score.

use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Duration;

use cairn_chassis::clock::Timestamp;
use cairn_index::{Hit, StoredChunk};
use cairn_proto::document::v1::ConfirmedDocument;

use super::similar::{Compared, Signature};
use super::tuning::{AGE_HALF_LIFE_DAYS, AGE_WEIGHT};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A hit of the index that its owner has confirmed.
#[derive(Debug)]
pub(super) struct Evidence {
    pub(super) hit: Hit,
    pub(super) chunk: StoredChunk,
    pub(super) document: Arc<ConfirmedDocument>,
    /// The age penalty: 0 or less.
    pub(super) age: f64,
    /// The reranker's contribution, positive or negative.
    pub(super) rerank: Option<f64>,
    /// Whether it is a live answer of its provider.
    pub(super) is_live: bool,
    signature: Signature,
}

impl Evidence {
    pub(super) fn new(
        hit: Hit,
        chunk: StoredChunk,
        document: Arc<ConfirmedDocument>,
        now: Timestamp,
    ) -> Self {
        let age = age_bonus(f64::from(hit.score), document.updated_at.as_ref(), now);
        Self { hit, chunk, document, age, rerank: None, is_live: false, signature: Signature::default() }
    }

    /// Marks it as a live answer of its provider.
    pub(super) fn read_live(mut self) -> Self {
        self.is_live = true;
        self
    }

    /// The final score, 0 to 1.
    pub(super) fn score(&self) -> f64 {
        self.unranked_score() + self.rerank.unwrap_or(0.0)
    }

    /// The score without the reranker's part.
    pub(super) fn unranked_score(&self) -> f64 {
        f64::from(self.hit.score) + self.age
    }

    /// Best first; ties by the younger document, then by document and ordinal, so that the order does not depend on the engine.
    pub(super) fn order(&self, other: &Self) -> Ordering {
        let by_score = other.score().total_cmp(&self.score());
        by_score.then_with(|| other.written().cmp(&self.written())).then(self.chunk.id.cmp(&other.chunk.id))
    }

    fn written(&self) -> Option<Timestamp> {
        self.document.updated_at.as_ref().map(Timestamp::from_proto)
    }

    /// The chunk's lines verbatim, without the last line break.
    pub(super) fn lines(&self) -> &str {
        own_lines(&self.chunk)
    }

    /// Whether its text is nearly that of the other one.
    pub(super) fn says_the_same_as(&self, other: &Self) -> bool {
        let own = Compared { signature: &self.signature, text: || self.lines() };
        own.is_nearly(&Compared { signature: &other.signature, text: || other.lines() })
    }
}

/// The age penalty: 0 for a new document or one of unknown age, at most [`AGE_WEIGHT`] of the score.
///
/// It is proportional to the score, so that documents of one age keep their order and scores stay within 0 to 1. Age counts in
/// whole days, so that repeated searches give the same scores.
fn age_bonus(score: f64, updated_at: Option<&prost_types::Timestamp>, now: Timestamp) -> f64 {
    let Some(updated_at) = updated_at else { return 0.0 };
    let age = (now.since(Timestamp::from_proto(updated_at)).as_secs_f64() / DAY.as_secs_f64()).floor();
    let freshness = (-age / AGE_HALF_LIFE_DAYS).exp2();
    -score * AGE_WEIGHT * (1.0 - freshness)
}

/// The text of a chunk without the blank lines that are stored behind it. The text of a whole chunk ends with a line
/// end, that of a piece of a line never does.
pub(super) fn own_lines(chunk: &StoredChunk) -> &str {
    if !chunk.text.ends_with('\n') {
        return &chunk.text;
    }
    let lines = usize::try_from(chunk.end_line.saturating_sub(chunk.start_line)).unwrap_or(usize::MAX);
    let end = chunk.text.match_indices('\n').nth(lines).map_or(chunk.text.len(), |(end, _)| end);
    let text = chunk.text.get(..end).unwrap_or_default();
    text.strip_suffix('\r').unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bonus(score: f64, days: u64) -> f64 {
        let written = Timestamp::from_proto(&prost_types::Timestamp { seconds: 1_700_000_000, nanos: 0 });
        let age = DAY * u32::try_from(days).unwrap();
        age_bonus(score, Some(&written.to_proto()), written.plus(age))
    }

    #[test]
    fn age_takes_little_and_never_more_than_its_weight() {
        assert_eq!(bonus(0.8, 0), 0.0);
        assert!((bonus(0.8, 90) + 0.008).abs() < 1e-12, "half of 2 % of .8 after the half-life");
        assert!((bonus(0.8, 180) + 0.012).abs() < 1e-12);
        assert!((bonus(1.0, 36_500) + 0.02).abs() < 1e-12);
        assert_eq!(age_bonus(0.8, None, Timestamp::from_proto(&prost_types::Timestamp::default())), 0.0);
    }

    #[test]
    fn a_clock_that_went_back_changes_nothing() {
        let later = prost_types::Timestamp { seconds: 1_700_000_000, nanos: 0 };
        let now = Timestamp::from_proto(&prost_types::Timestamp { seconds: 1_600_000_000, nanos: 0 });
        assert_eq!(age_bonus(0.8, Some(&later), now), 0.0);
    }

    proptest! {
        #[test]
        fn documents_of_one_age_keep_their_order(
            better in 0.0_f64..=1.0, worse in 0.0_f64..=1.0, days in 0_u64..40_000,
        ) {
            prop_assume!(better > worse);
            prop_assert!(better + bonus(better, days) > worse + bonus(worse, days));
            prop_assert!(worse + bonus(worse, days) >= 0.0);
        }

        #[test]
        fn of_equals_the_younger_is_better(score in 0.01_f64..=1.0, days in 0_u64..400, older in 1_u64..400) {
            prop_assert!(bonus(score, days) > bonus(score, days + older));
        }
    }
}
