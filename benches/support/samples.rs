//! Statistics of measurements.

use std::time::Duration;

/// The value below which that share of the samples lies; zero without samples.
pub(crate) fn percentile(samples: &[Duration], share: f64) -> Duration {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    let last = sorted.len().saturating_sub(1);
    let place = (last as f64 * share).round() as usize;
    sorted.get(place).copied().unwrap_or_default()
}
