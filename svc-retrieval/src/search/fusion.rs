//! Rank fusion: of the lists of words and meaning of one query, and of the lists of sub-queries.

use cairn_index::{ChunkId, Hit, sort_hits};
use foldhash::{HashMap, HashMapExt as _};

use super::tuning::RRF_K;

/// One list of a reciprocal-rank fusion.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RankedList<'a> {
    /// How much the list counts.
    pub weight: f32,
    /// The chunks, best first.
    pub hits: &'a [Hit],
}

/// Fuses one query's lists by max-normalised scores: `weight · bm25/max + (1 − weight) · cosine/max`.
///
/// `words` are BM25 hits; a chunk outside them counts 0 there. `cosines` are the exact cosines of all
/// candidates; a negative one counts 0. Scores are 0 to 1; chunks that score 0 are left out.
#[must_use]
pub(crate) fn fuse_scores(words: &[Hit], cosines: &[Hit], word_weight: f32) -> Vec<Hit> {
    let mut scores = HashMap::with_capacity(cosines.len());
    add_normalised(&mut scores, words, word_weight);
    add_normalised(&mut scores, cosines, 1.0 - word_weight);
    ranked(scores)
}

/// Adds `weight · score/max` of each hit; without a positive score there is nothing to add.
fn add_normalised(scores: &mut HashMap<ChunkId, f32>, hits: &[Hit], weight: f32) {
    let greatest = hits.iter().fold(0.0_f32, |greatest, hit| greatest.max(hit.score));
    if greatest <= 0.0 {
        return;
    }
    for hit in hits {
        *scores.entry(hit.chunk).or_default() += weight * hit.score.max(0.0) / greatest;
    }
}

/// Fuses the lists of several queries by weighted reciprocal rank, `Σ weight / (k + rank)` with ranks from
/// 1, divided by what a chunk that leads every list would get. Scores are 0 to 1.
#[must_use]
pub(crate) fn fuse_ranks(lists: &[RankedList<'_>]) -> Vec<Hit> {
    let greatest: f32 = lists.iter().map(|list| list.weight / (RRF_K + 1.0)).sum();
    let mut scores: HashMap<ChunkId, f32> = HashMap::new();
    if greatest <= 0.0 {
        return Vec::new();
    }
    for list in lists {
        for (place, hit) in list.hits.iter().enumerate() {
            let rank = place as f32 + 1.0;
            *scores.entry(hit.chunk).or_default() += list.weight / (RRF_K + rank) / greatest;
        }
    }
    ranked(scores)
}

/// Fuses disjoint lists by reciprocal rank, `(k + 1) / (k + rank)`: the best of each scores 1, and the lists are interleaved.
#[must_use]
pub(crate) fn fuse_apart(lists: &[&[Hit]]) -> Vec<Hit> {
    let ranked_of = |list: &&[Hit]| -> Vec<Hit> {
        let hits = list.iter().enumerate();
        hits.map(|(place, hit)| Hit { chunk: hit.chunk, score: (RRF_K + 1.0) / (RRF_K + place as f32 + 1.0) })
            .collect()
    };
    let mut hits: Vec<Hit> = lists.iter().flat_map(ranked_of).collect();
    sort_hits(&mut hits);
    hits
}

fn ranked(scores: HashMap<ChunkId, f32>) -> Vec<Hit> {
    let positive = scores.into_iter().filter(|(_, score)| *score > 0.0);
    // Rounding may push a perfect score slightly above 1.
    let mut hits: Vec<Hit> = positive.map(|(chunk, score)| Hit { chunk, score: score.min(1.0) }).collect();
    sort_hits(&mut hits);
    hits
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;
    use crate::search::tuning::{ORIGINAL_WEIGHT, SUB_QUERY_WEIGHT};

    fn chunk(number: u128) -> ChunkId {
        ChunkId { document: Uuid::from_u128(number), ordinal: 0 }
    }

    fn hits(list: &[(u128, f32)]) -> Vec<Hit> {
        list.iter().map(|(number, score)| Hit { chunk: chunk(*number), score: *score }).collect()
    }

    #[track_caller]
    fn check(fused: &[Hit], expected: &[(u128, f32)]) {
        let order: Vec<ChunkId> = fused.iter().map(|hit| hit.chunk).collect();
        let expected_order: Vec<ChunkId> = expected.iter().map(|(number, _)| chunk(*number)).collect();
        assert_eq!(order, expected_order);
        for (hit, (_, score)) in fused.iter().zip(expected) {
            assert!((hit.score - score).abs() < 1e-6, "{} is not {score}", hit.score);
        }
    }

    #[test]
    fn scores_are_normalised_by_each_lists_best() {
        let words = hits(&[(1, 8.0), (2, 4.0)]);
        let cosines = hits(&[(1, 0.2), (2, 0.4), (3, 0.1)]);
        check(&fuse_scores(&words, &cosines, 0.5), &[(1, 0.75), (2, 0.75), (3, 0.125)]);
        check(&fuse_scores(&words, &cosines, 0.75), &[(1, 0.875), (2, 0.625), (3, 0.0625)]);
    }

    #[test]
    fn a_negative_cosine_counts_nothing() {
        let words = hits(&[(1, 8.0)]);
        let cosines = hits(&[(1, -0.5), (2, -0.1)]);
        check(&fuse_scores(&words, &cosines, 0.5), &[(1, 0.5)]);
    }

    #[test]
    fn one_list_alone_keeps_its_share() {
        check(&fuse_scores(&[], &hits(&[(1, 0.4), (2, 0.2)]), 0.5), &[(1, 0.5), (2, 0.25)]);
        check(&fuse_scores(&[], &[], 0.5), &[]);
    }

    #[test]
    fn leading_every_list_scores_one() {
        let list = hits(&[(1, 0.9), (2, 0.8)]);
        let other = hits(&[(1, 0.5), (3, 0.4)]);
        let fused = fuse_ranks(&[
            RankedList { weight: ORIGINAL_WEIGHT, hits: &list },
            RankedList { weight: SUB_QUERY_WEIGHT, hits: &other },
        ]);
        check(&fused, &[(1, 1.0), (2, 2.0 / 3.0 * 61.0 / 62.0), (3, 1.0 / 3.0 * 61.0 / 62.0)]);
        check(&fuse_ranks(&[]), &[]);
    }

    #[test]
    fn lists_apart_take_turns() {
        let (list, other) = (hits(&[(5, 0.9), (1, 0.1)]), hits(&[(2, 30.0), (4, 20.0), (3, 10.0)]));
        let second = 61.0 / 62.0;
        check(
            &fuse_apart(&[&list, &other]),
            &[(2, 1.0), (5, 1.0), (1, second), (4, second), (3, 61.0 / 63.0)],
        );
        check(&fuse_apart(&[&[], &list]), &[(5, 1.0), (1, second)]);
        check(&fuse_apart(&[]), &[]);
    }

    #[test]
    fn equal_scores_go_by_document_and_place() {
        let second = ChunkId { document: Uuid::from_u128(1), ordinal: 1 };
        let mut words = hits(&[(2, 1.0), (1, 1.0)]);
        words.insert(0, Hit { chunk: second, score: 1.0 });
        let order: Vec<ChunkId> = fuse_scores(&words, &[], 1.0).iter().map(|hit| hit.chunk).collect();
        assert_eq!(order, [chunk(1), second, chunk(2)]);
    }

    proptest! {
        #[test]
        fn scores_stay_within_bounds_whatever_the_order(
            words in proptest::collection::vec((0_u128..20, 0.0_f32..50.0), 0..20),
            cosines in proptest::collection::vec((0_u128..20, -1.0_f32..1.0), 0..20),
            weight in 0.0_f32..=1.0,
        ) {
            let words: HashMap<u128, f32> = words.into_iter().collect();
            let cosines: HashMap<u128, f32> = cosines.into_iter().collect();
            let words = hits(&words.into_iter().collect::<Vec<_>>());
            let mut cosines = hits(&cosines.into_iter().collect::<Vec<_>>());
            let fused = fuse_scores(&words, &cosines, weight);
            prop_assert!(fused.iter().all(|hit| hit.score > 0.0 && hit.score <= 1.0));
            cosines.reverse();
            prop_assert_eq!(fused, fuse_scores(&words, &cosines, weight));
        }
    }
}
