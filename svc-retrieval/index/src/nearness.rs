//! The proximity bonus for two words of a query that are near each other in a chunk; the same in every engine.

use crate::tuning::{NEAR, NEAR_WEIGHT};

/// The parameters of BM25, as in tantivy.
const K1: f32 = 1.2;
const B: f32 = 0.75;

/// The bonus of a chunk for a pair of words with these idfs that occurs near each other `near` times, in a chunk of `length` times the
/// average length.
pub(crate) fn gain(idfs: [f32; 2], near: usize, length: f32) -> f32 {
    let near = near as f32;
    let weight = NEAR_WEIGHT * idfs.iter().sum::<f32>() / 2.0;
    weight * near * (K1 + 1.0) / (near + K1 * (1.0 - B + B * length))
}

/// How many pairs of positions of the two words are near each other. Both lists are sorted.
pub(crate) fn near(first: &[u32], second: &[u32]) -> usize {
    let near_to = |place: &u32| {
        let from = second.partition_point(|other| *other < place.saturating_sub(NEAR));
        second
            .iter()
            .skip(from)
            .take_while(|other| **other <= place + NEAR)
            .filter(|other| *other != place)
            .count()
    };
    first.iter().map(near_to).sum()
}

#[cfg(test)]
mod tests {
    use super::{gain, near};

    #[test]
    fn counts_what_is_near_before_and_after() {
        assert_eq!(near(&[0, 100], &[3, 97, 200]), 2);
        assert_eq!(near(&[10], &[4, 5, 10, 15, 16]), 2);
        assert_eq!(near(&[], &[1]), 0);
    }

    #[test]
    fn more_counts_more_and_never_as_much_as_the_words() {
        let rare = [3.0, 5.0];
        assert!(gain(rare, 0, 1.0).abs() < f32::EPSILON);
        assert!(gain(rare, 2, 1.0) > gain(rare, 1, 1.0) && gain(rare, 1, 2.0) < gain(rare, 1, 1.0));
        assert!(gain([1.0, 1.0], 1, 1.0) < gain(rare, 1, 1.0));
        // A third of what one of the words counts, at most.
        assert!(gain(rare, 1_000, 1.0) < 0.3 * 4.0 * 2.2);
    }
}
