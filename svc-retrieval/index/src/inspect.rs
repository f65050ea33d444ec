//! Features of a few chunks for reranking: their texts, the composition of their vectors, and the frequencies of the question's words
//! and pieces.

use std::collections::{HashMap, HashSet};

use uuid::Uuid;

use crate::vectors::Composed;
use crate::words::{Finder, Languages, MAX_FOUND, SignificantWord, SignificantWords};
use crate::{ChunkId, StoredChunk};

/// A request for the features of some chunks.
#[derive(Debug, Clone, Default)]
pub struct InspectRequest {
    /// The workspace searched.
    pub workspace: Uuid,
    /// The folders and sources searched, `None` for the whole workspace: the corpus for idf.
    pub containers: Option<HashSet<Uuid>>,
    /// The chunks.
    pub chunks: Vec<ChunkId>,
    /// The question, whose words are counted.
    pub question: String,
    /// The pieces of the question; `None` if the composition of vectors is not needed.
    pub pieces: Option<Vec<u16>>,
}

/// The features of some chunks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Inspection {
    /// The chunks that are indexed, in the given order.
    pub chunks: Vec<StoredChunk>,
    /// If pieces were given: the vector and pieces of each chunk that has a vector.
    pub composed: HashMap<ChunkId, Composed>,
    /// If pieces were given: how many chunks contain each. `None` if the engine does not count them, and for a search restricted to
    /// folders, whose scores must not depend on anything outside of them (docs/adr/0033).
    pub piece_counts: Option<PieceCounts>,
    /// The words of the question.
    pub words: QuestionWords,
}

/// How many chunks of a workspace contain some pieces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PieceCounts {
    /// The chunks that have a vector.
    pub chunks: u32,
    /// For each requested piece, in order, the number of chunks that contain it.
    pub counts: Vec<u32>,
}

/// The significant words of a question, each with its idf in the corpus.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QuestionWords {
    /// Distinct words with their idf; 1 for all if the engine does not count.
    pub words: Vec<(SignificantWord, f32)>,
    /// The languages of the texts.
    pub languages: Languages,
}

impl QuestionWords {
    /// The words of a question for texts in these languages; `idf` returns that of a word's forms.
    ///
    /// # Errors
    /// Those of `idf`.
    pub fn of<E>(
        question: &str,
        languages: Languages,
        mut idf: impl FnMut(&[String]) -> Result<f32, E>,
    ) -> Result<Self, E> {
        let significant = SignificantWords::of(question, languages);
        let mut words = Vec::with_capacity(significant.count());
        for word in significant.words().iter().take(MAX_FOUND) {
            words.push((word.clone(), idf(&word.forms)?));
        }
        Ok(Self { words, languages: languages.with(crate::words::Language::English) })
    }

    /// A finder of these words in texts.
    #[must_use]
    pub fn finder(&self) -> Finder<'_> {
        Finder::new(self.words.iter().map(|(word, _)| word), self.languages)
    }

    /// The sum of the idf of the words in a [`Finder`]'s result, a bitmap.
    #[must_use]
    pub fn idf_sum(&self, bitmap: u64) -> f32 {
        let found = self.words.iter().enumerate().filter(|(place, _)| bitmap >> place & 1 == 1);
        found.map(|(_, (_, idf))| idf).sum()
    }

    /// The words of a question without frequencies.
    #[must_use]
    pub fn uncounted(question: &str, languages: Languages) -> Self {
        let Ok(words) = Self::of(question, languages, |_| Ok::<f32, std::convert::Infallible>(1.0));
        words
    }
}

/// BM25's idf of a term that `containing` of `all` chunks contain.
#[must_use]
pub fn idf(all: u64, containing: u64) -> f32 {
    let containing = containing.min(all);
    (1.0 + ((all - containing) as f32 + 0.5) / (containing as f32 + 0.5)).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_chunks_mean_a_higher_idf() {
        assert!(idf(10, 0) > idf(10, 1) && idf(10, 1) > idf(10, 9));
        assert!(idf(10, 10) > 0.0 && idf(0, 0) > 0.0 && idf(1, 5) > 0.0);
        assert!((idf(3, 1) - (1.0_f32 + 2.5 / 1.5).ln()).abs() < 1e-6);
    }

    #[test]
    fn words_are_distinct_and_weigh_the_same_if_uncounted() {
        let asked = QuestionWords::uncounted("how do I rotate the key of keys", Languages::default());
        let words: Vec<(&str, f32)> =
            asked.words.iter().map(|(word, idf)| (word.word.as_str(), *idf)).collect();
        assert_eq!(words, [("rotate", 1.0), ("key", 1.0)]);
        let many: String = (0..200).map(|number| format!("word{number}x ")).collect();
        assert_eq!(QuestionWords::uncounted(&many, Languages::default()).words.len(), MAX_FOUND);
    }
}
