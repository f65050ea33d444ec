//! What a chunk gets for two words of a question that stand near each other in it; the same with every engine.

use crate::tuning::{NEAR, NEAR_WEIGHT};

/// The constants of BM25, as tantivy has them.
const K1: f32 = 1.2;
const B: f32 = 0.75;

/// What is added to a chunk's score by words for a pair of words of these rarities whose places are near each other so often, in
/// a chunk of `length` times the usual length.
pub(crate) fn gain(rarities: [f32; 2], near: usize, length: f32) -> f32 {
    let near = near as f32;
    let weight = NEAR_WEIGHT * rarities.iter().sum::<f32>() / 2.0;
    weight * near * (K1 + 1.0) / (near + K1 * (1.0 - B + B * length))
}

/// How often places of the one, which are sorted as those of the other, are near a place of the other.
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
