//! The vectors of one workspace, contiguous in memory.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashMap, HashSet};

use half::f16;
use uuid::Uuid;

use super::kernel::{dot_codes, dot_halves, normalised, quantise};
use super::{DocumentVectors, UnitVector};
use crate::index::tuning::{FEWEST_RESCORED, RESCORED_PER_RESULT};
use crate::index::{ChunkId, Hit, sort_hits};

/// A query's direction, exact and quantised.
pub(super) struct Direction {
    exact: Vec<f32>,
    codes: Vec<i8>,
}

impl Direction {
    /// None for a query that has no direction.
    pub(super) fn new(vector: &[f32]) -> Option<Self> {
        let exact = normalised(vector)?;
        let mut codes = Vec::with_capacity(exact.len());
        // The query's own scale is the same for every row and so changes no order.
        let _scale = quantise(&exact, &mut codes);
        Some(Self { exact, codes })
    }
}

/// Parallel arrays with one entry a row (`dimensions` entries in `codes` and `exact`). Rows have no order:
/// the last one fills the place of a removed one.
#[derive(Debug)]
pub(super) struct Rows {
    dimensions: usize,
    codes: Vec<i8>,
    scales: Vec<f32>,
    exact: Vec<f16>,
    chunks: Vec<ChunkId>,
    containers: Vec<Option<Uuid>>,
    by_document: HashMap<Uuid, Vec<usize>>,
}

impl Rows {
    /// `dimensions` is at least 1.
    pub(super) fn new(dimensions: usize) -> Self {
        Self {
            dimensions,
            codes: Vec::new(),
            scales: Vec::new(),
            exact: Vec::new(),
            chunks: Vec::new(),
            containers: Vec::new(),
            by_document: HashMap::new(),
        }
    }

    /// Replaces the rows of a document.
    pub(super) fn replace(&mut self, vectors: &DocumentVectors) {
        self.remove(vectors.document);
        for (ordinal, vector) in &vectors.rows {
            let chunk = ChunkId { document: vectors.document, ordinal: *ordinal };
            self.push(chunk, vectors.container, vector);
        }
    }

    /// Adds the row of a chunk that has none. A vector of other dimensions is left out.
    pub(super) fn push(&mut self, chunk: ChunkId, container: Option<Uuid>, vector: &UnitVector) {
        if vector.dimensions() != self.dimensions {
            return;
        }
        let row = self.chunks.len();
        self.scales.push(quantise(&vector.to_f32(), &mut self.codes));
        self.exact.extend_from_slice(vector.halves());
        self.chunks.push(chunk);
        self.containers.push(container);
        self.by_document.entry(chunk.document).or_default().push(row);
    }

    fn remove(&mut self, document: Uuid) {
        let mut rows = self.by_document.remove(&document).unwrap_or_default();
        // From the back, so that a row that fills a gap is never one that is still to be removed.
        rows.sort_unstable();
        for row in rows.into_iter().rev() {
            self.remove_row(row);
        }
    }

    fn remove_row(&mut self, row: usize) {
        let last = self.chunks.len().saturating_sub(1);
        if let Some(moved) = self.chunks.get(last).filter(|_| row != last)
            && let Some(rows) = self.by_document.get_mut(&moved.document)
            && let Some(place) = rows.iter_mut().find(|place| **place == last)
        {
            *place = row;
        }
        swap_remove_block(&mut self.codes, row, self.dimensions);
        swap_remove_block(&mut self.exact, row, self.dimensions);
        self.scales.swap_remove(row);
        self.chunks.swap_remove(row);
        self.containers.swap_remove(row);
    }

    /// The greatest cosines: a pass over the codes keeps a few candidates, the exact vectors decide.
    pub(super) fn search(
        &self,
        query: &Direction,
        containers: Option<&HashSet<Uuid>>,
        limit: usize,
    ) -> Vec<Hit> {
        let kept = limit.saturating_mul(RESCORED_PER_RESULT).max(FEWEST_RESCORED);
        let mut best = Best::new(kept);
        let rows = self.codes.chunks_exact(self.dimensions).zip(&self.scales).zip(&self.containers);
        for (row, ((codes, scale), container)) in rows.enumerate() {
            if is_within(*container, containers) {
                best.offer(dot_codes(&query.codes, codes) as f32 * scale, row);
            }
        }
        let mut hits: Vec<Hit> = best.rows().filter_map(|row| self.hit(query, row)).collect();
        sort_hits(&mut hits);
        hits.truncate(limit);
        hits
    }

    /// The exact cosine of a chunk, none if it has no row.
    pub(super) fn score(&self, query: &Direction, chunk: ChunkId) -> Option<f32> {
        let rows = self.by_document.get(&chunk.document)?;
        let row = rows.iter().find(|row| self.chunks.get(**row) == Some(&chunk))?;
        self.cosine(query, *row)
    }

    fn hit(&self, query: &Direction, row: usize) -> Option<Hit> {
        Some(Hit { chunk: *self.chunks.get(row)?, score: self.cosine(query, row)? })
    }

    fn cosine(&self, query: &Direction, row: usize) -> Option<f32> {
        let start = row * self.dimensions;
        let exact = self.exact.get(start..start + self.dimensions)?;
        Some(dot_halves(&query.exact, exact))
    }
}

/// Whether a document in `container` is to be searched.
fn is_within(container: Option<Uuid>, searched: Option<&HashSet<Uuid>>) -> bool {
    let Some(searched) = searched else { return true };
    container.is_some_and(|container| searched.contains(&container))
}

/// Moves the last block of a flat array into the place of the removed one.
fn swap_remove_block<T: Copy>(flat: &mut Vec<T>, row: usize, length: usize) {
    let last = flat.len().saturating_sub(length);
    flat.copy_within(last.., row * length);
    flat.truncate(last);
}

/// Keeps the rows of the greatest scores.
struct Best {
    kept: usize,
    least_first: BinaryHeap<Reverse<Scored>>,
}

impl Best {
    fn new(kept: usize) -> Self {
        Self { kept, least_first: BinaryHeap::new() }
    }

    fn offer(&mut self, score: f32, row: usize) {
        if self.least_first.len() < self.kept {
            self.least_first.push(Reverse(Scored { score, row }));
            return;
        }
        if let Some(mut least) = self.least_first.peek_mut()
            && score > least.0.score
        {
            *least = Reverse(Scored { score, row });
        }
    }

    fn rows(self) -> impl Iterator<Item = usize> {
        self.least_first.into_iter().map(|Reverse(scored)| scored.row)
    }
}

struct Scored {
    score: f32,
    row: usize,
}

impl Ord for Scored {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score.total_cmp(&other.score).then(other.row.cmp(&self.row))
    }
}

impl PartialOrd for Scored {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Scored {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Scored {}
