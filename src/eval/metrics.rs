//! Ranking metrics as `trec_eval` computes them. Pure: no files, no service.
//!
//! A ranking is a list of gains, best place first: the relevance of each result, 0 for an irrelevant one. The judged
//! gains are those of all relevant results.

use std::cmp::Ordering;
use std::time::Duration;

/// The ranking's discounted cumulative gain at `depth`, divided by that of the ideal ranking: `Σ gain / log2(place +
/// 1)`, places from 1. 0 if nothing is relevant.
#[must_use]
pub(super) fn ndcg(gains: &[f64], judged: &[f64], depth: usize) -> f64 {
    let mut best = judged.to_vec();
    best.sort_by(|a, b| b.total_cmp(a));
    let ideal = discounted(&best, depth);
    if ideal > 0.0 { discounted(gains, depth) / ideal } else { 0.0 }
}

fn discounted(gains: &[f64], depth: usize) -> f64 {
    let places = gains.iter().take(depth).zip(2_u32..);
    places.map(|(gain, discount)| gain / f64::from(discount).log2()).sum()
}

/// The share of relevant results within `depth`. 0 if nothing is relevant.
#[must_use]
pub(super) fn recall(gains: &[f64], judged: &[f64], depth: usize) -> f64 {
    let right = judged.iter().filter(|gain| **gain > 0.0).count();
    let found = gains.iter().take(depth).filter(|gain| **gain > 0.0).count();
    if right > 0 { found as f64 / right as f64 } else { 0.0 }
}

/// The reciprocal of the first relevant result's place; 0 without one.
#[must_use]
pub(super) fn reciprocal_rank(gains: &[f64]) -> f64 {
    let place = gains.iter().position(|gain| *gain > 0.0);
    place.map_or(0.0, |place| 1.0 / (place as f64 + 1.0))
}

/// The documents of scored hits, best first: each once, with its best hit's score. Ties are broken by the document's
/// name, the later name first, as in `trec_eval`, so that a figure does not depend on the order of hits.
#[must_use]
pub(super) fn documents<'a>(hits: impl IntoIterator<Item = (&'a str, f64)>) -> Vec<&'a str> {
    let mut best: Vec<(&str, f64)> = Vec::new();
    for (document, score) in hits {
        match best.iter_mut().find(|(known, _)| *known == document) {
            Some((_, kept)) => *kept = kept.max(score),
            None => best.push((document, score)),
        }
    }
    best.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| b.0.cmp(a.0)));
    best.into_iter().map(|(document, _)| document).collect()
}

/// The mean; 0 for an empty input.
#[must_use]
pub(super) fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let (mut sum, mut count) = (0.0, 0_u32);
    for value in values {
        sum += value;
        count += 1;
    }
    if count > 0 { sum / f64::from(count) } else { 0.0 }
}

/// The smallest duration that at least `percent` of them do not exceed; zero for an empty input.
#[must_use]
pub(super) fn percentile(durations: &[Duration], percent: usize) -> Duration {
    let mut sorted = durations.to_vec();
    sorted.sort_unstable();
    let place = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(place).copied().unwrap_or_default()
}

/// The number of queries that improved and that regressed, and of those that stayed the same.
#[must_use]
pub(super) fn outcomes(changes: impl IntoIterator<Item = f64>) -> (usize, usize, usize) {
    let (mut better, mut worse, mut same) = (0, 0, 0);
    for change in changes {
        match change.partial_cmp(&0.0) {
            Some(Ordering::Greater) => better += 1,
            Some(Ordering::Less) => worse += 1,
            Some(Ordering::Equal) | None => same += 1,
        }
    }
    (better, worse, same)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn close(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-9, "{value} is not {expected}");
    }

    #[test]
    fn ndcg_is_that_of_a_worked_example() {
        // 3/1 + 2/log2(3) + 3/2 + 0 + 1/log2(6) over 3/1 + 3/log2(3) + 2/2 + 1/log2(5).
        let gains = [3.0, 2.0, 3.0, 0.0, 1.0];
        close(ndcg(&gains, &[3.0, 3.0, 2.0, 1.0], 10), 6.148_712_314_377_457 / 6.323_465_818_787_765);
    }

    #[test]
    fn ndcg_looks_no_deeper_than_it_is_told() {
        close(ndcg(&[0.0, 1.0], &[1.0], 1), 0.0);
        close(ndcg(&[0.0, 1.0], &[1.0], 2), 1.0 / 3.0_f64.log2());
        // The ideal ranking is cut at the same depth.
        close(ndcg(&[1.0, 1.0], &[1.0, 1.0, 1.0], 2), 1.0);
    }

    #[test]
    fn nothing_found_or_nothing_to_find_is_zero() {
        close(ndcg(&[], &[1.0], 10), 0.0);
        close(ndcg(&[0.0], &[], 10), 0.0);
        close(recall(&[], &[1.0], 10), 0.0);
        close(recall(&[0.0], &[0.0], 10), 0.0);
        close(reciprocal_rank(&[]), 0.0);
        close(mean([]), 0.0);
        assert_eq!(percentile(&[], 50), Duration::ZERO);
    }

    #[test]
    fn recall_counts_what_is_right_whatever_it_is_worth() {
        let judged = [2.0, 1.0, 1.0, 1.0, 0.0];
        close(recall(&[1.0, 0.0, 2.0, 1.0], &judged, 10), 0.75);
        close(recall(&[1.0, 0.0, 2.0, 1.0], &judged, 2), 0.25);
    }

    #[test]
    fn the_first_right_place_counts() {
        close(reciprocal_rank(&[1.0, 1.0]), 1.0);
        close(reciprocal_rank(&[0.0, 0.0, 2.0, 1.0]), 1.0 / 3.0);
    }

    #[test]
    fn a_document_counts_once_with_its_best_hit() {
        assert_eq!(documents([("a", 0.5), ("b", 0.9), ("a", 0.95)]), ["a", "b"]);
    }

    #[test]
    fn ties_go_by_the_later_name_whatever_the_order() {
        assert_eq!(documents([("a", 0.5), ("c", 0.5), ("b", 0.5), ("z", 0.1)]), ["c", "b", "a", "z"]);
        assert_eq!(documents([("z", 0.1), ("b", 0.5), ("a", 0.5), ("c", 0.5)]), ["c", "b", "a", "z"]);
    }

    #[test]
    fn a_percentile_is_one_of_the_durations() {
        let durations: Vec<Duration> = [40, 10, 30, 20].map(Duration::from_millis).into();
        assert_eq!(percentile(&durations, 50), Duration::from_millis(20));
        assert_eq!(percentile(&durations, 95), Duration::from_millis(40));
        assert_eq!(percentile(&durations, 1), Duration::from_millis(10));
    }

    #[test]
    fn outcomes_are_counted() {
        assert_eq!(outcomes([0.1, -0.2, 0.0, 0.3]), (2, 1, 1));
    }
}
