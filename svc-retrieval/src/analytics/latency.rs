//! A histogram with buckets that grow by a tenth, after DDSketch (Masson, Rim, Lee: "DDSketch", VLDB 2019): whatever the
//! distribution, a percentile read from it is within 5 % of the true one. Histograms add up bucket by bucket, so that
//! hours, days and processes can be put together without an error of their own.

use std::collections::BTreeMap;
use std::time::Duration;

/// The relative error of percentiles.
const ERROR: f64 = 0.05;
/// The growth factor of buckets.
const GROWTH: f64 = (1.0 + ERROR) / (1.0 - ERROR);

/// The durations of microseconds in `(GROWTH^(n-1), GROWTH^n]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Bucket(i64);

impl Bucket {
    /// The bucket of a duration; the shortest is a microsecond.
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "at most 444")]
    pub(crate) fn of(duration: Duration) -> Self {
        let micros = duration.as_micros().max(1) as f64;
        Self((micros.ln() / GROWTH.ln()).ceil() as i64)
    }

    /// The bucket with that number.
    pub(crate) const fn from_number(number: i64) -> Self {
        Self(number)
    }

    /// Its number, for columns.
    pub(crate) const fn number(self) -> i64 {
        self.0
    }

    /// The value that is within the error of all in the bucket.
    fn micros(self) -> u64 {
        let exponent = i32::try_from(self.0).unwrap_or(i32::MAX);
        let middle = 2.0 * GROWTH.powi(exponent) / (GROWTH + 1.0);
        Duration::try_from_secs_f64(middle / 1e6).map_or(u64::MAX, |duration| {
            u64::try_from(duration.as_nanos().div_ceil(1_000)).unwrap_or(u64::MAX)
        })
    }
}

/// How many durations fell into each bucket.
#[derive(Debug, Clone, Default)]
pub(crate) struct Histogram(BTreeMap<Bucket, u64>);

/// The percentiles of a histogram, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Latency {
    pub(crate) p50_micros: u64,
    pub(crate) p95_micros: u64,
}

impl Histogram {
    /// Adds durations of one bucket.
    pub(crate) fn add(&mut self, bucket: Bucket, count: u64) {
        let held = self.0.entry(bucket).or_default();
        *held = held.saturating_add(count);
    }

    /// Half and 95 of 100 durations are at most these; `None` without any.
    pub(crate) fn latency(&self) -> Option<Latency> {
        Some(Latency { p50_micros: self.percentile(50)?, p95_micros: self.percentile(95)? })
    }

    /// The nearest-rank percentile.
    fn percentile(&self, percent: u64) -> Option<u64> {
        let total: u64 = self.0.values().sum();
        let rank = u64::try_from((u128::from(total) * u128::from(percent)).div_ceil(100)).ok()?;
        let mut below = 0_u64;
        let reached = self.0.iter().find(|(_, count)| {
            below = below.saturating_add(**count);
            below >= rank
        });
        reached.filter(|_| total > 0).map(|(bucket, _)| bucket.micros())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn histogram(micros: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        for one in micros {
            histogram.add(Bucket::of(Duration::from_micros(*one)), 1);
        }
        histogram
    }

    fn exact(micros: &[u64], percent: usize) -> u64 {
        let mut sorted = micros.to_vec();
        sorted.sort_unstable();
        sorted[(sorted.len() * percent).div_ceil(100) - 1]
    }

    /// What is told is a whole number of microseconds, rounded up.
    fn is_near(told: u64, exact: u64) -> bool {
        #[expect(clippy::cast_precision_loss, reason = "a test's durations are short")]
        let (told, exact) = (told as f64, exact.max(1) as f64);
        (told - exact).abs() <= exact * (ERROR + 1e-9) + 1.0
    }

    proptest! {
        #[test]
        fn percentiles_are_within_the_stated_error(
            micros in prop::collection::vec(prop_oneof![0_u64..50, 0_u64..20_000, 0_u64..90_000_000], 1..400)
        ) {
            let latency = histogram(&micros).latency().unwrap();
            let (p50, p95) = (exact(&micros, 50), exact(&micros, 95));
            prop_assert!(is_near(latency.p50_micros, p50), "{} is not {p50}", latency.p50_micros);
            prop_assert!(is_near(latency.p95_micros, p95), "{} is not {p95}", latency.p95_micros);
        }

        #[test]
        fn parts_add_up_to_the_whole(
            micros in prop::collection::vec(0_u64..1_000_000, 2..200), cut in any::<prop::sample::Index>()
        ) {
            let (one, other) = micros.split_at(cut.index(micros.len()));
            let mut whole = histogram(one);
            for (bucket, count) in histogram(other).0 {
                whole.add(bucket, count);
            }
            prop_assert_eq!(whole.latency(), histogram(&micros).latency());
        }
    }

    #[test]
    fn nothing_has_no_percentile_and_the_longest_has_one() {
        assert_eq!(Histogram::default().latency(), None);
        let mut longest = Histogram::default();
        longest.add(Bucket::of(Duration::MAX), u64::MAX);
        assert!(longest.latency().is_some());
        assert_eq!(histogram(&[0]).latency(), histogram(&[1]).latency());
    }
}
