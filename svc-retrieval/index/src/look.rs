//! What a second look at a few chunks needs: their texts, what their vectors are made of, and how rare the words and the
//! pieces of the question are.

use std::collections::{HashMap, HashSet};

use uuid::Uuid;

use crate::vectors::Composed;
use crate::words::{Finder, Languages, MOST_FOUND, Telling, TellingWord};
use crate::{ChunkId, StoredChunk};

/// Which chunks are looked at, and for which question.
#[derive(Debug, Clone, Default)]
pub struct Look {
    /// The workspace searched.
    pub workspace: Uuid,
    /// The folders and sources searched, none for the whole workspace: words are as rare as they are there.
    pub containers: Option<HashSet<Uuid>>,
    /// The chunks.
    pub chunks: Vec<ChunkId>,
    /// The question, whose words are told.
    pub question: String,
    /// The pieces of the question; none where nobody asks what vectors are made of.
    pub pieces: Option<Vec<u16>>,
}

/// What there is to see.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Seen {
    /// Those of the chunks that the index holds, in the order given.
    pub chunks: Vec<StoredChunk>,
    /// Where pieces were given: of each of the chunks that has a vector, that and its pieces.
    pub composed: HashMap<ChunkId, Composed>,
    /// Where pieces were given: how many chunks hold each of them. None where that is not counted: by an engine that keeps no
    /// counts, and for a search of some folders, whose scores nothing outside of them may move (docs/adr/0033).
    pub held: Option<PiecesHeld>,
    /// The words of the question.
    pub words: AskedWords,
}

/// How many chunks of a workspace hold some pieces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PiecesHeld {
    /// The chunks that have a vector.
    pub chunks: u32,
    /// Of each piece that was asked about, in their order, how many of them hold it.
    pub holding: Vec<u32>,
}

/// The words of a question that tell what is asked for, each with how rare it is in what is searched.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AskedWords {
    /// Each word once. A word that is nowhere is the rarest; an engine that does not count says 1 of all.
    pub words: Vec<(TellingWord, f32)>,
    /// The languages that texts may be in.
    pub languages: Languages,
}

impl AskedWords {
    /// Those of a question to texts of these languages, each as rare as `rarity` says of its forms.
    ///
    /// # Errors
    /// Whatever `rarity` says.
    pub fn of<E>(
        question: &str,
        languages: Languages,
        mut rarity: impl FnMut(&[String]) -> Result<f32, E>,
    ) -> Result<Self, E> {
        let telling = Telling::of(question, languages);
        let mut words = Vec::with_capacity(telling.count());
        for word in telling.words().iter().take(MOST_FOUND) {
            words.push((word.clone(), rarity(&word.forms)?));
        }
        Ok(Self { words, languages: languages.with(crate::words::Language::English) })
    }

    /// Finds them in texts.
    #[must_use]
    pub fn finder(&self) -> Finder<'_> {
        Finder::new(self.words.iter().map(|(word, _)| word), self.languages)
    }

    /// How rare the words of a [`Finder`]'s answer are, all together.
    #[must_use]
    pub fn rarity_of(&self, held: u64) -> f32 {
        let rarities = self.words.iter().enumerate().filter(|(place, _)| held >> place & 1 == 1);
        rarities.map(|(_, (_, rarity))| rarity).sum()
    }

    /// Those of a question where nothing is counted.
    #[must_use]
    pub fn uncounted(question: &str, languages: Languages) -> Self {
        let Ok(words) = Self::of(question, languages, |_| Ok::<f32, std::convert::Infallible>(1.0));
        words
    }
}

/// BM25's measure of how rare a thing is that `holding` of `all` chunks hold; the greatest for what none holds.
#[must_use]
pub fn rarity(all: u64, holding: u64) -> f32 {
    let holding = holding.min(all);
    (1.0 + ((all - holding) as f32 + 0.5) / (holding as f32 + 0.5)).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fewer_hold_is_rarer() {
        assert!(rarity(10, 0) > rarity(10, 1) && rarity(10, 1) > rarity(10, 9));
        assert!(rarity(10, 10) > 0.0 && rarity(0, 0) > 0.0 && rarity(1, 5) > 0.0);
        assert!((rarity(3, 1) - (1.0_f32 + 2.5 / 1.5).ln()).abs() < 1e-6);
    }

    #[test]
    fn words_are_told_once_and_uncounted_ones_alike() {
        let asked = AskedWords::uncounted("how do I rotate the key of keys", Languages::default());
        let words: Vec<(&str, f32)> =
            asked.words.iter().map(|(word, rarity)| (word.word.as_str(), *rarity)).collect();
        assert_eq!(words, [("rotate", 1.0), ("key", 1.0)]);
        let many: String = (0..200).map(|number| format!("word{number}x ")).collect();
        assert_eq!(AskedWords::uncounted(&many, Languages::default()).words.len(), MOST_FOUND);
    }
}
