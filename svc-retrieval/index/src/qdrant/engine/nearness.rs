//! Words of a question near each other, in what Qdrant finds: their places are read back from the tokens of a chunk, and how rare
//! they are from how Qdrant scores each of them alone.

use std::collections::{BTreeSet, HashMap};

use qdrant_client::qdrant::ScoredPoint;

use super::points;
use super::tuning::AVERAGE_LENGTH;
use super::words::{GAP, WALL, dimension};
use crate::nearness::{gain, near};
use crate::words::Sought;

/// Places over which nothing is near: a wall stands for more free places than are written out.
const BEHIND_A_WALL: u32 = 100;

/// The words of a search whose places matter, each once.
pub(super) fn paired(sought: &Sought) -> BTreeSet<&str> {
    sought.pairs.iter().flatten().map(String::as_str).collect()
}

/// What a chunk with these tokens gets for pairs of words that stand near each other in it.
///
/// Its length is told by its tokens, in which a form that stands beside its word ([`super::words`]) is written once only: a chunk
/// of names counts as a little shorter than it is.
pub(super) fn bonus(pairs: &[[String; 2]], tokens: &str, rarities: &HashMap<u32, f32>) -> f32 {
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
        let rarity = |word: &str| rarities.get(&dimension(word)).copied().unwrap_or_default();
        Some(gain([rarity(first), rarity(second)], near, length))
    };
    pairs.iter().filter_map(of_pair).sum()
}

/// How rare a word is: the score of the best chunk for that word alone is what it weighs there, times its rarity. None where no
/// chunk holds it.
pub(super) fn rarity(dimension: u32, found: &[ScoredPoint]) -> Option<f32> {
    let best = found.first()?;
    let weight = points::weight(best.vectors.as_ref(), dimension)?;
    Some(best.score / weight).filter(|rarity| rarity.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ParsedQuery;
    use crate::qdrant::engine::words::Words;
    use crate::words::{Language, Languages, Searched};

    fn of(question: &str, text: &str) -> f32 {
        let sought = Sought::new(&ParsedQuery::parse(question), Languages::default());
        let words = Words::of(Searched::text(text, Language::English));
        let rarities = paired(&sought).into_iter().map(|word| (dimension(word), 2.0)).collect();
        bonus(&sought.pairs, &words.tokens, &rarities)
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
        let searched =
            Searched { headings: &headings, ..Searched::text("limit of reads", Language::English) };
        let sought = Sought::new(&ParsedQuery::parse("rate limit"), Languages::default());
        let rarities = paired(&sought).into_iter().map(|word| (dimension(word), 2.0)).collect();
        let words = Words::of(searched);
        assert!(bonus(&sought.pairs, &words.tokens, &rarities).abs() < f32::EPSILON);
    }
}
