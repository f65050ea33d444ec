//! The proximity bonus of hits from Qdrant: positions are recovered from the tokens of a chunk, and the idf of each word from its score
//! in a query of that word only.

use std::collections::{BTreeSet, HashMap};

use qdrant_client::qdrant::ScoredPoint;

use super::points;
use super::tuning::AVERAGE_LENGTH;
use super::words::{GAP, WALL, dimension};
use crate::nearness::{gain, near};
use crate::words::AnalysedQuery;

/// Positions that a wall counts for: more than any distance that is near.
const BEHIND_A_WALL: u32 = 100;

/// The distinct words of a search that the bonus needs.
pub(super) fn paired(analysed: &AnalysedQuery) -> BTreeSet<&str> {
    analysed.pairs.iter().flatten().map(String::as_str).collect()
}

/// The bonus of a chunk with these tokens for pairs of words near each other.
///
/// The chunk's length is the number of tokens, in which additional forms ([`super::words`]) are written only once: a chunk of names
/// counts as slightly shorter than it is.
pub(super) fn bonus(pairs: &[[String; 2]], tokens: &str, idfs: &HashMap<u32, f32>) -> f32 {
    if pairs.is_empty() || tokens.is_empty() {
        return 0.0;
    }
    let mut places: HashMap<&str, Vec<u32>> = HashMap::new();
    let (mut place, mut words) = (0_u32, 0_u32);
    for token in tokens.split(' ') {
        match token {
            GAP => place += 1,
            WALL => place += BEHIND_A_WALL,
            word => {
                if pairs.iter().flatten().any(|wanted| wanted == word) {
                    places.entry(word).or_default().push(place);
                }
                place += 1;
                words += 1;
            }
        }
    }
    let length = words as f32 / AVERAGE_LENGTH;
    let of_pair = |[first, second]: &[String; 2]| {
        let near = near(places.get(first.as_str())?, places.get(second.as_str())?);
        let idf = |word: &str| idfs.get(&dimension(word)).copied().unwrap_or_default();
        Some(gain([idf(first), idf(second)], near, length))
    };
    pairs.iter().filter_map(of_pair).sum()
}

/// The idf of a word: the score of its best chunk is its weight there times the idf. `None` if no chunk contains it.
pub(super) fn idf(dimension: u32, found: &[ScoredPoint]) -> Option<f32> {
    let best = found.first()?;
    let weight = points::weight(best.vectors.as_ref(), dimension)?;
    Some(best.score / weight).filter(|idf| idf.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ParsedQuery;
    use crate::qdrant::engine::words::Words;
    use crate::words::{Language, Languages, SearchableText};

    fn of(question: &str, text: &str) -> f32 {
        let analysed = AnalysedQuery::new(&ParsedQuery::parse(question), Languages::default());
        let words = Words::of(SearchableText::text(text, Language::English));
        let idfs = paired(&analysed).into_iter().map(|word| (dimension(word), 2.0)).collect();
        bonus(&analysed.pairs, &words.tokens, &idfs)
    }

    #[test]
    fn words_near_each_other_are_worth_more() {
        let together = of("rate limit", "the rate of the limit");
        assert!(together > 0.0);
        assert!(of("rate limit", "rate limits and limited rates") > together);
        for apart in ["rate one two three four five six seven limit", "rate alone", ""] {
            assert!(of("rate limit", apart).abs() < f32::EPSILON, "{apart}");
        }
        assert!(of("rate", "rate rate rate").abs() < f32::EPSILON, "one word is no pair");
    }

    #[test]
    fn fields_are_far_from_each_other() {
        let headings = ["The rate".to_owned()];
        let searched = SearchableText {
            headings: &headings,
            ..SearchableText::text("limit of reads", Language::English)
        };
        let analysed = AnalysedQuery::new(&ParsedQuery::parse("rate limit"), Languages::default());
        let idfs = paired(&analysed).into_iter().map(|word| (dimension(word), 2.0)).collect();
        let words = Words::of(searched);
        assert!(bonus(&analysed.pairs, &words.tokens, &idfs).abs() < f32::EPSILON);
    }
}
