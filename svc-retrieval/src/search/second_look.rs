//! A second look: reranks the best chunks of one query, where vectors are sums of the rows of word pieces.
//!
//! The best [`SECOND_LOOK_CHUNKS`] hits of words and meaning are scored again with data that the index has besides their vectors: late
//! interaction of the rare pieces of the question with those of the chunk, the cosine with a query vector that weighs rare pieces
//! more, words of the question in title and headings, and the cosine with the three best chunks (pseudo-relevance feedback). There
//! is no second search, and the other hits stay behind them.
//!
//! Each part is normalized by its maximum and weighted, so that scores stay 0 to 1 and the parts add up. The constants and their
//! measured gains: `tuning.rs` and docs/EVALUATION.md.

use std::borrow::Cow;

use cairn_embed::{Affinity, StaticRows, Union, distinct};
use cairn_index::chunk::text_under;
use cairn_index::vectors::Composed;
use cairn_index::{ChunkId, Hit, Inspection, PieceCounts, StoredChunk, idf, sort_hits};
use foldhash::{HashMap, HashSet};

use super::tuning::{
    FEEDBACK_CHUNKS, FEEDBACK_WEIGHT, HEADINGS_WEIGHT, MEANING_WEIGHT, MIN_PIECE_WEIGHT, PIECES_COMPARED,
    PIECES_WEIGHT, SECOND_LOOK_CHUNKS,
};

/// The question of a second look.
#[derive(Debug)]
pub(super) struct Question<'a> {
    rows: &'a StaticRows,
    /// The informative pieces, in their order, with repeats.
    pieces: Vec<u16>,
    /// How much of the question the rows cover, 0 to 1.
    coverage: f32,
    word_weight: f32,
}

/// One component of the scores.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Part {
    /// Its name in a trace.
    pub(super) kind: &'static str,
    pub(super) weight: f32,
    /// The normalizer; 0 where no chunk has a value.
    pub(super) greatest: f32,
    /// Every scored chunk, best first.
    pub(super) hits: Vec<Hit>,
}

/// The reordered chunks, and the components of their scores.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Second {
    pub(super) hits: Vec<Hit>,
    pub(super) parts: Vec<Part>,
}

impl<'a> Question<'a> {
    /// `word_weight` is the configured share of words among words and meaning.
    pub(super) fn new(rows: &'a StaticRows, text: &str, word_weight: f32) -> Self {
        Self { rows, pieces: rows.pieces(text), coverage: rows.coverage(text), word_weight }
    }

    /// The pieces, each once.
    pub(super) fn distinct_pieces(&self) -> Vec<u16> {
        distinct(self.pieces.clone())
    }

    /// The words' share of the first scores: the part of the question that the rows do not cover is left to the words.
    pub(super) fn first_word_weight(&self) -> f32 {
        1.0 - (1.0 - self.word_weight) * self.coverage
    }

    /// Reorders the best of `found` (best first). `words` is the list of words.
    pub(super) fn look(&self, found: &[Hit], words: &[Hit], inspection: &Inspection) -> Second {
        let chunks: Vec<ChunkId> = found.iter().take(SECOND_LOOK_CHUNKS).map(|hit| hit.chunk).collect();
        let weighed = Weighed::of(self, inspection.piece_counts.as_ref());
        let texts: HashMap<ChunkId, &StoredChunk> =
            inspection.chunks.iter().map(|chunk| (chunk.id, chunk)).collect();
        let vector = |id: &ChunkId| inspection.composed.get(id).map(|composed| composed.vector.to_f32());
        let vectors: HashMap<ChunkId, Vec<f32>> =
            chunks.iter().filter_map(|id| Some((*id, vector(id)?))).collect();

        let mut parts = vec![
            self.words_part(&chunks, words),
            self.part(
                "semantic",
                self.of_meaning(),
                &chunks,
                near_to(&weighed.direction(self.rows), &vectors),
            ),
            self.part(
                "pieces",
                PIECES_WEIGHT,
                &chunks,
                self.pieces_near(&weighed, &chunks, &texts, inspection),
            ),
            self.part("headings", HEADINGS_WEIGHT, &chunks, in_headings(&texts, inspection)),
        ];
        let first = scored(&chunks, &parts);
        let feedback = near_to(&centroid_of_best(&first, &vectors), &vectors);
        parts.push(self.part("feedback", FEEDBACK_WEIGHT, &chunks, feedback));
        Second { hits: scored(&chunks, &parts), parts }
    }

    /// The weight of meaning: words and meaning share their weight as configured.
    fn of_meaning(&self) -> f32 {
        2.0 * MEANING_WEIGHT * (1.0 - self.word_weight)
    }

    /// All other weights are scaled by the coverage of the question; words get the rest.
    fn words_part(&self, chunks: &[ChunkId], words: &[Hit]) -> Part {
        let others = self.of_meaning() + PIECES_WEIGHT + HEADINGS_WEIGHT + FEEDBACK_WEIGHT;
        let greatest = words.iter().fold(0.0_f32, |greatest, hit| greatest.max(hit.score));
        let chunks: HashSet<&ChunkId> = chunks.iter().collect();
        let hits = words.iter().filter(|hit| chunks.contains(&hit.chunk)).copied().collect();
        Part { kind: "keyword", weight: 1.0 - others * self.coverage, greatest, hits }
    }

    fn part(
        &self,
        kind: &'static str,
        weight: f32,
        chunks: &[ChunkId],
        values: HashMap<ChunkId, f32>,
    ) -> Part {
        let value = |chunk: &ChunkId| values.get(chunk).copied().unwrap_or_default().max(0.0);
        let mut hits: Vec<Hit> =
            chunks.iter().map(|chunk| Hit { chunk: *chunk, score: value(chunk) }).collect();
        hits.retain(|hit| hit.score > 0.0);
        sort_hits(&mut hits);
        let greatest = hits.first().map_or(0.0, |hit| hit.score);
        Part { kind, weight: weight * self.coverage, greatest, hits }
    }

    /// Late interaction: the maximal cosine for each of the rarest pieces of the question, weighted by idf.
    fn pieces_near(
        &self,
        weighed: &Weighed,
        chunks: &[ChunkId],
        texts: &HashMap<ChunkId, &StoredChunk>,
        inspection: &Inspection,
    ) -> HashMap<ChunkId, f32> {
        let of_chunk = |id: &ChunkId| {
            let composed = inspection.composed.get(id)?;
            Some((*id, self.pieces_of(composed, texts.get(id).copied())))
        };
        let of_chunks: Vec<(ChunkId, Cow<'_, [u16]>)> = chunks.iter().filter_map(of_chunk).collect();
        let all = Union::of(of_chunks.iter().map(|(_, pieces)| pieces.as_ref()));
        let asked: Vec<(u16, f32)> = weighed.rarest();
        let question: Vec<u16> = asked.iter().map(|(piece, _)| *piece).collect();
        let weights: Vec<f32> = asked.iter().map(|(_, weight)| *weight).collect();
        let affinity = self.rows.affinity(&self.rows.query_rows(&question), all.pieces());
        let near =
            |(id, pieces): &(ChunkId, Cow<'_, [u16]>)| (*id, nearness(pieces, &all, &affinity, &weights));
        of_chunks.iter().map(near).collect()
    }

    /// The stored pieces; where an engine stores none, those of the embedded text.
    fn pieces_of<'s>(&self, composed: &'s Composed, stored: Option<&StoredChunk>) -> Cow<'s, [u16]> {
        match stored {
            Some(chunk) if composed.pieces.is_empty() => {
                let passage = chunk.text.trim_end();
                let text = text_under(&chunk.title, &chunk.heading_path, &chunk.table_header, passage);
                Cow::Owned(distinct(self.rows.pieces(&text)))
            }
            Some(_) | None => Cow::Borrowed(&composed.pieces),
        }
    }
}

/// MaxSim: the weighted sum over the question's pieces of the maximal cosine with a piece of the chunk.
fn nearness(pieces: &[u16], all: &Union, affinity: &Affinity, weights: &[f32]) -> f32 {
    let mut nearest = vec![0.0_f32; weights.len()];
    for place in pieces.iter().filter_map(|piece| all.place(*piece)) {
        for (nearest, cosine) in nearest.iter_mut().zip(affinity.of(place)) {
            *nearest = nearest.max(*cosine);
        }
    }
    nearest.iter().zip(weights).map(|(cosine, weight)| cosine * weight).sum()
}

/// The pieces of a question with their frequency and idf.
struct Weighed {
    pieces: Vec<WeighedPiece>,
}

struct WeighedPiece {
    piece: u16,
    times: f32,
    /// The weight in late interaction.
    idf: f32,
    /// The weight in the query vector, 0 to 1.
    share: f32,
}

impl Weighed {
    /// Without counts in the index, idf is that of the embedder's vocabulary, and the query vector is unweighted.
    fn of(question: &Question<'_>, counted: Option<&PieceCounts>) -> Self {
        let weighed = |(place, piece): (usize, u16)| {
            let times = question.pieces.iter().filter(|other| **other == piece).count() as f32;
            let (idf, share) = match counted {
                Some(counted) => {
                    let all = u64::from(counted.chunks);
                    let containing = u64::from(counted.counts.get(place).copied().unwrap_or_default());
                    let idf = idf(all, containing);
                    (idf, (idf / (1.0 + all as f32).ln().max(f32::MIN_POSITIVE)).max(MIN_PIECE_WEIGHT))
                }
                None => (question.rows.weight(piece), 1.0),
            };
            WeighedPiece { piece, times, idf, share }
        };
        Self { pieces: question.distinct_pieces().into_iter().enumerate().map(weighed).collect() }
    }

    /// The query vector: half plain, half weighted by idf.
    fn direction(&self, rows: &StaticRows) -> Vec<f32> {
        let plain = rows.direction(self.pieces.iter().map(|one| (one.piece, one.times)));
        let rare = rows.direction(self.pieces.iter().map(|one| (one.piece, one.times * one.share)));
        unit(plain.iter().zip(&rare).map(|(plain, rare)| plain + rare).collect())
    }

    /// The rarest pieces with their weights. Repeats count, and take up slots.
    fn rarest(&self) -> Vec<(u16, f32)> {
        let mut pieces: Vec<&WeighedPiece> = self.pieces.iter().collect();
        pieces.sort_by(|one, other| other.idf.total_cmp(&one.idf));
        let mut places = PIECES_COMPARED as f32;
        let mut rarest = Vec::with_capacity(PIECES_COMPARED.min(pieces.len()));
        for one in pieces {
            let times = one.times.min(places);
            if times > 0.0 {
                rarest.push((one.piece, one.idf * times));
            }
            places -= times;
        }
        rarest
    }
}

/// The total idf of the words of the question in the title or headings of each chunk.
fn in_headings(texts: &HashMap<ChunkId, &StoredChunk>, inspection: &Inspection) -> HashMap<ChunkId, f32> {
    let finder = inspection.words.finder();
    let of_chunk = |(id, chunk): (&ChunkId, &&StoredChunk)| {
        let above = std::iter::once(&chunk.title).chain(&chunk.heading_path);
        let bitmap = above.fold(0, |bitmap, text| bitmap | finder.matches(text));
        (*id, inspection.words.idf_sum(bitmap))
    };
    texts.iter().map(of_chunk).collect()
}

/// The chunks scored by the parts so far, best first.
fn scored(chunks: &[ChunkId], parts: &[Part]) -> Vec<Hit> {
    let mut scores: HashMap<ChunkId, f32> = chunks.iter().map(|chunk| (*chunk, 0.0)).collect();
    for part in parts.iter().filter(|part| part.greatest > 0.0) {
        for hit in &part.hits {
            if let Some(score) = scores.get_mut(&hit.chunk) {
                *score += part.weight * hit.score.max(0.0) / part.greatest;
            }
        }
    }
    // Rounding may push a perfect score slightly above 1.
    let mut hits: Vec<Hit> =
        scores.into_iter().map(|(chunk, score)| Hit { chunk, score: score.min(1.0) }).collect();
    sort_hits(&mut hits);
    hits
}

/// The centroid of the best chunks, weighted by their squared scores.
fn centroid_of_best(best: &[Hit], vectors: &HashMap<ChunkId, Vec<f32>>) -> Vec<f32> {
    let mut middle = Vec::new();
    for hit in best.iter().take(FEEDBACK_CHUNKS) {
        let Some(vector) = vectors.get(&hit.chunk) else { continue };
        middle.resize(vector.len(), 0.0);
        let weight = hit.score * hit.score;
        middle.iter_mut().zip(vector).for_each(|(sum, number)| *sum += weight * number);
    }
    unit(middle)
}

fn near_to(direction: &[f32], vectors: &HashMap<ChunkId, Vec<f32>>) -> HashMap<ChunkId, f32> {
    vectors.iter().map(|(id, vector)| (*id, product(vector, direction))).collect()
}

/// The dot product, with eight accumulators: float addition is not reordered by the compiler, so a single sum would not be vectorized.
fn product(one: &[f32], other: &[f32]) -> f32 {
    let (one_blocks, one_rest) = one.as_chunks::<8>();
    let (other_blocks, other_rest) = other.as_chunks::<8>();
    let mut sums = [0.0_f32; 8];
    for (one, other) in one_blocks.iter().zip(other_blocks) {
        for ((sum, one), other) in sums.iter_mut().zip(one).zip(other) {
            *sum += one * other;
        }
    }
    let rest: f32 = one_rest.iter().zip(other_rest).map(|(one, other)| one * other).sum();
    sums.iter().sum::<f32>() + rest
}

fn unit(mut vector: Vec<f32>) -> Vec<f32> {
    let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|number| *number /= length);
    }
    vector
}

/// The factor for the scores of the other hits, so that they stay behind the reordered ones.
pub(super) fn scale_behind(found: &[Hit], second: &[Hit]) -> f32 {
    let last_before = found.get(second.len().saturating_sub(1)).map_or(0.0, |hit| hit.score);
    let last = second.last().map_or(0.0, |hit| hit.score);
    if last_before > 0.0 { last / last_before } else { 0.0 }
}

#[cfg(test)]
mod measured;
#[cfg(test)]
mod tests;
