//! Judges from samples whether resource usage is stable.
//!
//! Clients delete what they create, so most figures must be flat. Data with a retention period (docs/OPERATIONS.md,
//! "What grows, and how far") grows with writes until the period is over, but its growth must not accelerate.

use crate::samples::Sample;

/// The minimum number of samples for a verdict.
const MIN_SAMPLES: usize = 8;

/// How a figure may develop.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Allowance {
    /// It stays within a share of its level plus a constant.
    Flat { share: f64, besides: f64 },
    /// It grows per write as in the first half, within a share of that plus a constant.
    WithWrites { share: f64, besides: f64 },
}

/// The verdict on one figure.
#[derive(Debug, Clone)]
pub(crate) struct Verdict {
    pub(crate) name: String,
    /// The means of both halves.
    pub(crate) halves: [f64; 2],
    /// The growth in the second half, by a linear fit.
    pub(crate) growth: f64,
    /// The allowed growth.
    pub(crate) allowed: f64,
}

impl Verdict {
    pub(crate) fn holds(&self) -> bool {
        self.growth <= self.allowed
    }
}

const MIB: f64 = 1024.0 * 1024.0;

/// The first matching prefix and suffix of a figure's name applies.
const ALLOWANCES: [(&str, &str, Allowance); 16] = [
    ("memory", "", Allowance::Flat { share: 0.1, besides: 32.0 * MIB }),
    ("open files", "", Allowance::Flat { share: 0.1, besides: 16.0 }),
    ("threads", "", Allowance::Flat { share: 0.1, besides: 8.0 }),
    // Segments come and go with merges.
    ("index/", "", Allowance::Flat { share: 0.5, besides: 16.0 * MIB }),
    ("assets/", "", Allowance::Flat { share: 0.1, besides: 0.0 }),
    // The log is truncated to 16 MiB after a checkpoint.
    ("", ".db-wal", Allowance::Flat { share: 0.5, besides: 32.0 * MIB }),
    ("", ".db", Allowance::WithWrites { share: 0.5, besides: 4.0 * MIB }),
    ("content.feed_changes", "", Allowance::WithWrites { share: 0.1, besides: 100.0 }),
    ("content.activity", "", Allowance::WithWrites { share: 0.1, besides: 100.0 }),
    // Versions of the files that the directory sync rewrites.
    ("content.file_versions", "", Allowance::WithWrites { share: 0.25, besides: 200.0 }),
    ("ingest.feed_changes", "", Allowance::WithWrites { share: 0.1, besides: 100.0 }),
    ("retrieval.retrieval_documents", "", Allowance::WithWrites { share: 0.1, besides: 200.0 }),
    ("sync.sync_pieces", "", Allowance::Flat { share: 0.25, besides: 20.0 }),
    ("sync.sync_entries", "", Allowance::Flat { share: 0.0, besides: 0.0 }),
    // Records of runs.
    ("sync.", "", Allowance::WithWrites { share: 0.25, besides: 20.0 }),
    ("", "", Allowance::Flat { share: 0.25, besides: 50.0 }),
];

/// The verdicts on all figures; empty if there are too few samples.
pub(crate) fn judge(samples: &[Sample]) -> Vec<Verdict> {
    // The first samples are warm-up.
    let settled = &samples[samples.len() / 8..];
    if settled.len() < MIN_SAMPLES {
        return Vec::new();
    }
    let names = settled[0].values.keys();
    names.map(|name| judge_one(name, settled)).collect()
}

fn judge_one(name: &str, samples: &[Sample]) -> Verdict {
    let allowance = allowance_of(name);
    let points: Vec<(f64, f64)> = samples
        .iter()
        .map(|sample| {
            let along = match allowance {
                Allowance::Flat { .. } => sample.at.as_secs_f64(),
                Allowance::WithWrites { .. } => sample.writes as f64,
            };
            (along, sample.values.get(name).copied().unwrap_or_default() as f64)
        })
        .collect();
    let (first, second) = points.split_at(points.len() / 2);
    let span = second[second.len() - 1].0 - second[0].0;
    let halves = [mean(first), mean(second)];
    let allowed = match allowance {
        Allowance::Flat { share, besides } => halves[0] * share + besides,
        Allowance::WithWrites { share, besides } => slope(first).max(0.0) * span * (1.0 + share) + besides,
    };
    Verdict { name: name.to_owned(), halves, growth: slope(second) * span, allowed }
}

fn allowance_of(name: &str) -> Allowance {
    let fits = |(begin, end, _): &&(&str, &str, Allowance)| name.starts_with(*begin) && name.ends_with(*end);
    let (_, _, allowance) = ALLOWANCES.iter().find(fits).unwrap();
    *allowance
}

fn mean(points: &[(f64, f64)]) -> f64 {
    points.iter().map(|(_, value)| value).sum::<f64>() / points.len() as f64
}

/// The slope of the least-squares line.
fn slope(points: &[(f64, f64)]) -> f64 {
    let middle = points.iter().map(|(along, _)| along).sum::<f64>() / points.len() as f64;
    let level = mean(points);
    let above: f64 = points.iter().map(|(along, value)| (along - middle) * (value - level)).sum();
    let below: f64 = points.iter().map(|(along, _)| (along - middle).powi(2)).sum();
    if below > 0.0 { above / below } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Forty samples of one figure, a second and ten writes apart.
    fn of(name: &str, value: impl Fn(u64) -> u64) -> Verdict {
        let sample = |number: u64| Sample {
            at: Duration::from_secs(number),
            writes: usize::try_from(number * 10).unwrap(),
            values: [(name.to_owned(), value(number))].into(),
        };
        let samples: Vec<Sample> = (0..40).map(sample).collect();
        let [verdict]: [Verdict; 1] = judge(&samples).try_into().unwrap();
        verdict
    }

    #[test]
    fn what_stands_still_or_swings_is_flat() {
        assert!(of("content.files", |_| 500).holds());
        assert!(of("content.files", |number| 500 + (number % 7) * 10).holds());
        assert!(of("open files", |number| 100 - number).holds());
    }

    #[test]
    fn what_goes_on_growing_is_not() {
        assert!(!of("memory", |number| (200 + number * 10) << 20).holds());
        assert!(!of("open files", |number| 50 + number * 3).holds());
        assert!(!of("content.files", |number| 100 + number * 20).holds());
        assert!(!of("auth.sessions", |number| number * 10).holds());
        assert!(!of("content.db-wal", |number| (number * 8) << 20).holds());
    }

    #[test]
    fn what_is_kept_for_a_time_grows_with_what_is_written_and_no_faster() {
        assert!(of("content.feed_changes", |number| number * 100).holds());
        assert!(of("content.db", |number| (1 + number) << 20).holds());
        assert!(!of("content.feed_changes", |number| number * number * 10).holds());
    }

    #[test]
    fn a_few_samples_say_nothing() {
        assert!(judge(&[]).is_empty());
    }
}
