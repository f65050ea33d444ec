//! Highlights: the lines of a result that answer, at most three places, best first, each with its own headings.
//!
//! Sentences are scored by the idf of the question's distinct words in them, plus a share of their neighbours' scores. Words are
//! cheap, so they select candidates; among these, and where a passage has no word of the question, the cosines of the sentence's
//! pieces with those of the question count, too.

mod outline;
mod sentences;

use std::cell::OnceCell;

use cairn_embed::{QueryRows, StaticRows, distinct};
use cairn_index::QuestionWords;
use cairn_index::words::Finder;
use cairn_proto::retrieval::v1::Location;

use self::outline::Outline;
use self::sentences::{Sentence, sentences};
use super::page::Passage;
use super::tuning::{CANDIDATE_SHARE, MARKED_SHARE, MAX_CANDIDATES, MAX_HIGHLIGHTS, NEIGHBOUR_SHARE};

/// Finds the highlights of one answer's results.
pub(super) struct Marking<'a> {
    rows: &'a StaticRows,
    asked: &'a QuestionWords,
    finder: Finder<'a>,
    question: &'a str,
    /// The pieces of the question, computed lazily.
    pieces: OnceCell<Pieces>,
}

/// The pieces of a question.
struct Pieces {
    asked: QueryRows,
    /// The weight of each.
    weights: Vec<f32>,
}

impl Pieces {
    fn of(rows: &StaticRows, question: &str) -> Self {
        let pieces = distinct(rows.pieces(question));
        let weights = pieces.iter().map(|piece| rows.weight(*piece)).collect();
        Self { asked: rows.query_rows(&pieces), weights }
    }
}

impl<'a> Marking<'a> {
    /// For a question; `asked` has its words with their idf.
    pub(super) fn new(rows: &'a StaticRows, asked: &'a QuestionWords, question: &'a str) -> Self {
        Self { rows, asked, finder: asked.finder(), question, pieces: OnceCell::new() }
    }

    /// The highlights of a passage, best first; at least one where there is text.
    pub(super) fn highlights(&self, passage: &Passage<'_>) -> Vec<Location> {
        let content = passage.content();
        let first = passage.start_line();
        let outline = Outline::of(passage);
        let location = |sentence: Sentence<'_>| {
            // Pieces of a long line have the same line number.
            let line = |line: u32| first.saturating_add(line).min(passage.end_line());
            let (start_line, end_line) = (line(sentence.first), line(sentence.last));
            Location { start_line, end_line, heading_path: outline.path_at(end_line) }
        };
        self.places(&content).into_iter().map(location).collect()
    }

    /// The best sentences of a text, best first, without overlapping lines.
    fn places<'t>(&self, content: &'t str) -> Vec<Sentence<'t>> {
        let sentences = sentences(content);
        let mut places: Vec<Sentence<'t>> = Vec::with_capacity(MAX_HIGHLIGHTS);
        for sentence in self.best(&sentences) {
            if !places.iter().any(|other| other.overlaps(sentence)) {
                places.push(*sentence);
            }
        }
        places
    }

    fn best<'s, 't>(&self, sentences: &'s [Sentence<'t>]) -> Vec<&'s Sentence<'t>> {
        let by_words = self.by_words(sentences);
        let places = match leading(&by_words, MAX_CANDIDATES, CANDIDATE_SHARE) {
            none if none.is_empty() => ranked(&self.by_meaning(sentences), 1),
            one if one.len() == 1 => one,
            several => self.by_both(sentences, &by_words, several),
        };
        // Without any signal, the first sentence.
        let places = if places.is_empty() { vec![0] } else { places };
        places.into_iter().filter_map(|place| sentences.get(place)).collect()
    }

    /// The best of the candidates, best first: scored half by words, half by meaning.
    fn by_both(&self, sentences: &[Sentence<'_>], by_words: &[f32], candidates: Vec<usize>) -> Vec<usize> {
        let chosen: Vec<Sentence<'_>> =
            candidates.iter().filter_map(|place| sentences.get(*place)).copied().collect();
        let words: Vec<f32> = candidates.iter().filter_map(|place| by_words.get(*place)).copied().collect();
        let meaning = shares(self.by_meaning(&chosen));
        let both: Vec<f32> = shares(words).iter().zip(&meaning).map(|(word, near)| word + near).collect();
        let marked = leading(&both, MAX_HIGHLIGHTS, MARKED_SHARE).into_iter();
        marked.filter_map(|place| candidates.get(place).copied()).collect()
    }

    /// The score of each sentence by words; 0 without a word of the question.
    fn by_words(&self, sentences: &[Sentence<'_>]) -> Vec<f32> {
        let own: Vec<f32> =
            sentences.iter().map(|one| self.asked.idf_sum(self.finder.matches(one.text))).collect();
        let at = |place: Option<usize>| place.and_then(|place| own.get(place)).copied().unwrap_or_default();
        let with_neighbours = |(place, own): (usize, &f32)| {
            let beside = at(place.checked_sub(1)) + at(Some(place + 1));
            if *own > 0.0 { own + NEIGHBOUR_SHARE * beside } else { 0.0 }
        };
        own.iter().enumerate().map(with_neighbours).collect()
    }

    /// The score of each sentence by meaning: MaxSim with the question.
    fn by_meaning(&self, sentences: &[Sentence<'_>]) -> Vec<f32> {
        let question = self.pieces.get_or_init(|| Pieces::of(self.rows, self.question));
        let near = |sentence: &Sentence<'_>| {
            let pieces = distinct(self.rows.pieces(sentence.text));
            let affinity = self.rows.affinity(&question.asked, &pieces);
            let mut nearest = vec![0.0_f32; question.weights.len()];
            for piece in 0..pieces.len() {
                for (nearest, cosine) in nearest.iter_mut().zip(affinity.of(piece)) {
                    *nearest = nearest.max(*cosine);
                }
            }
            question.weights.iter().zip(nearest).map(|(weight, nearest)| weight * nearest).sum()
        };
        sentences.iter().map(near).collect()
    }
}

/// The indices of the top scores, best first, that are at least `share` of the maximum.
fn leading(scores: &[f32], most: usize, share: f32) -> Vec<usize> {
    let first = ranked(scores, most);
    let score = |place: &usize| scores.get(*place).copied().unwrap_or_default();
    let least = first.first().map(score).unwrap_or_default() * share;
    first.into_iter().filter(|place| score(place) >= least).collect()
}

/// Normalizes scores by their maximum.
fn shares(scores: Vec<f32>) -> Vec<f32> {
    let greatest = scores.iter().copied().fold(f32::MIN_POSITIVE, f32::max);
    scores.into_iter().map(|score| score / greatest).collect()
}

/// The indices of the top positive scores, best first; ties by index.
fn ranked(scores: &[f32], most: usize) -> Vec<usize> {
    let mut places: Vec<(usize, f32)> =
        scores.iter().copied().enumerate().filter(|(_, score)| *score > 0.0).collect();
    places.sort_by(|(one, first), (other, second)| second.total_cmp(first).then(one.cmp(other)));
    places.into_iter().take(most).map(|(place, _)| place).collect()
}

#[cfg(test)]
mod measured;
#[cfg(test)]
mod tests;
