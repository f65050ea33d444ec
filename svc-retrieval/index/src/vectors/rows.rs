//! The vectors of one workspace in contiguous memory.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;
use half::f16;
use uuid::Uuid;

use super::kernel::{code_products, half_products, normalised, quantise};
use super::signs::{RowSet, Signs};
use super::{Composed, DocumentVectors, UnitVector};
use crate::tuning::{
    MIN_RESCORED, RESCORED_PER_RESULT, SIGNS_FROM_ROWS, SIGNS_KEPT, SIGNS_KEPT_PER_RESULT,
    SIGNS_REBUILD_FACTOR,
};
use crate::{ChunkId, Hit, PieceCounts, sort_hits};

/// A query's unit vector, exact and quantised.
pub(super) struct QueryVector {
    exact: Vec<f32>,
    codes: Vec<i8>,
}

impl QueryVector {
    /// `None` for a zero vector.
    pub(super) fn new(vector: &[f32]) -> Option<Self> {
        let exact = normalised(vector)?;
        let mut codes = Vec::with_capacity(exact.len());
        // The query's scale is the same for every row, so it does not affect the order.
        let _scale = quantise(&exact, &mut codes);
        Some(Self { exact, codes })
    }
}

/// Parallel arrays with one entry per row (`dimensions` entries in `codes` and `exact`). Rows are unordered: removal swaps in the last
/// one.
#[derive(Debug)]
pub(super) struct Rows {
    dimensions: usize,
    codes: Vec<i8>,
    scales: Vec<f32>,
    exact: Vec<f16>,
    /// Only for workspaces with many rows.
    signs: Option<Signs>,
    chunks: Vec<ChunkId>,
    /// Indices into `container_table`.
    containers: Vec<u32>,
    container_table: ContainerTable,
    by_document: HashMap<Uuid, Vec<usize>, RandomState>,
    /// The pieces of each row.
    pieces: Vec<Box<[u16]>>,
    /// How many rows contain each piece that occurs. A dense table of all pieces would take as much for ten documents as for ten
    /// thousand.
    piece_counts: HashMap<u16, u32, RandomState>,
}

impl Rows {
    /// `dimensions` is at least 1.
    pub(super) fn new(dimensions: usize) -> Self {
        Self {
            dimensions,
            codes: Vec::new(),
            scales: Vec::new(),
            exact: Vec::new(),
            signs: None,
            chunks: Vec::new(),
            containers: Vec::new(),
            container_table: ContainerTable::default(),
            by_document: HashMap::default(),
            pieces: Vec::new(),
            piece_counts: HashMap::default(),
        }
    }

    /// Replaces the rows of a document.
    pub(super) fn replace(&mut self, vectors: &DocumentVectors) {
        self.remove(vectors.document);
        for (ordinal, row) in &vectors.rows {
            let chunk = ChunkId { document: vectors.document, ordinal: *ordinal };
            self.push(chunk, vectors.container, row);
        }
    }

    /// Adds the row of a chunk that has none. A vector with the wrong number of dimensions is ignored.
    pub(super) fn push(&mut self, chunk: ChunkId, container: Option<Uuid>, composed: &Composed) {
        let vector = &composed.vector;
        if vector.dimensions() != self.dimensions {
            return;
        }
        let row = self.chunks.len();
        self.scales.push(quantise(&vector.to_f32(), &mut self.codes));
        self.exact.extend_from_slice(vector.halves());
        self.chunks.push(chunk);
        self.containers.push(self.container_table.intern(container));
        self.by_document.entry(chunk.document).or_default().push(row);
        for piece in &composed.pieces {
            *self.piece_counts.entry(*piece).or_default() += 1;
        }
        self.pieces.push(composed.pieces.clone());
        self.push_signs(vector);
    }

    fn push_signs(&mut self, vector: &UnitVector) {
        let rows = self.chunks.len();
        let rebuild_at =
            self.signs.as_ref().map_or(SIGNS_FROM_ROWS, |signs| signs.rows_at_build() * SIGNS_REBUILD_FACTOR);
        if rows >= rebuild_at {
            self.signs = Some(Signs::new(&self.exact, self.dimensions));
        } else if let Some(signs) = &mut self.signs {
            signs.push(vector.halves());
        }
    }

    fn remove(&mut self, document: Uuid) {
        let mut rows = self.by_document.remove(&document).unwrap_or_default();
        // In descending order, so that the row that is swapped in is never one that is still to be removed.
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
        if let Some(signs) = &mut self.signs {
            signs.swap_remove(row);
        }
        self.scales.swap_remove(row);
        self.chunks.swap_remove(row);
        self.containers.swap_remove(row);
        for piece in self.pieces.swap_remove(row) {
            let left = self.piece_counts.get_mut(&piece).map(|count| {
                *count = count.saturating_sub(1);
                *count
            });
            if left == Some(0) {
                self.piece_counts.remove(&piece);
            }
        }
    }

    /// The highest cosines. Each pass scores fewer rows more exactly: signs, codes, then the exact vectors.
    pub(super) fn search(&self, query: &QueryVector, within: RowFilter<'_>, limit: usize) -> Vec<Hit> {
        let candidates = self.candidates(query, within, limit);
        let kept = limit.saturating_mul(RESCORED_PER_RESULT).max(MIN_RESCORED);
        let rows = self.nearest_by_codes(query, &candidates, kept);
        let mut cosines = Vec::with_capacity(rows.len());
        half_products(&query.exact, &self.exact, &rows, &mut cosines);

        let hit = |(row, score): (&u32, f32)| Some(Hit { chunk: *self.chunks.get(*row as usize)?, score });
        let mut hits: Vec<Hit> = rows.iter().zip(cosines).filter_map(hit).collect();
        sort_hits(&mut hits);
        hits.truncate(limit);
        hits
    }

    /// The `kept` rows with the nearest codes, unordered; ties by row.
    fn nearest_by_codes(&self, query: &QueryVector, rows: &[u32], kept: usize) -> Vec<u32> {
        let mut products = Vec::with_capacity(rows.len());
        code_products(&query.codes, &self.codes, rows, &mut products);
        let scored =
            |(row, product): (&u32, i32)| Some((product as f32 * self.scales.get(*row as usize)?, *row));
        let mut scored: Vec<(f32, u32)> = rows.iter().zip(products).filter_map(scored).collect();
        if kept < scored.len() {
            scored.select_nth_unstable_by(kept, |a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            scored.truncate(kept);
        }
        scored.into_iter().map(|(_, row)| row).collect()
    }

    /// The rows whose codes are scored, in ascending order: of many rows, those with the best signs.
    fn candidates(&self, query: &QueryVector, within: RowFilter<'_>, limit: usize) -> Vec<u32> {
        let searched = self.searched(within);
        let kept = (searched.len() / SIGNS_KEPT).max(limit.saturating_mul(SIGNS_KEPT_PER_RESULT));
        let is_worth_it = searched.len() >= SIGNS_FROM_ROWS && kept < searched.len();
        match self.signs.as_ref().filter(|_| is_worth_it) {
            Some(signs) => signs.nearest_by_signs(&query.exact, &searched, kept),
            None => searched.into_rows(),
        }
    }

    fn searched(&self, within: RowFilter<'_>) -> RowSet {
        if within.containers.is_none() && within.documents.is_none() {
            return RowSet::All(saturating_u32(self.chunks.len()));
        }
        let containers = within.containers.map(|containers| self.container_table.within(containers));
        let is_within = |place: &u32| match &containers {
            Some(within) => within.get(*place as usize).copied().unwrap_or(false),
            None => true,
        };
        let is_among =
            |chunk: &ChunkId| within.documents.is_none_or(|documents| documents.contains(&chunk.document));
        let rows = (0_u32..).zip(self.containers.iter().zip(&self.chunks));
        let searched = rows.filter(|(_, (place, chunk))| is_within(place) && is_among(chunk));
        RowSet::Listed(searched.map(|(row, _)| row).collect())
    }

    /// The exact cosine of each chunk, in the given order; 0 for one without a row.
    pub(super) fn cosines(&self, query: &QueryVector, chunks: &[ChunkId]) -> Vec<f32> {
        let no_row = saturating_u32(self.chunks.len());
        let rows: Vec<u32> =
            chunks.iter().map(|chunk| self.row_of(*chunk).map_or(no_row, saturating_u32)).collect();
        let mut cosines = Vec::with_capacity(rows.len());
        half_products(&query.exact, &self.exact, &rows, &mut cosines);
        cosines
    }

    fn row_of(&self, chunk: ChunkId) -> Option<usize> {
        let rows = self.by_document.get(&chunk.document)?;
        let is_its = |row: &&usize| self.chunks.get(**row) == Some(&chunk);
        // Rows of a document are in the order of its chunks, unless some have no vector or rows were moved.
        let likely = rows.get(chunk.ordinal as usize).filter(is_its);
        likely.or_else(|| rows.iter().find(is_its)).copied()
    }

    /// The vector and pieces of a chunk, `None` if it has no row.
    pub(super) fn composed(&self, chunk: ChunkId) -> Option<Composed> {
        let row = self.row_of(chunk)?;
        let exact = self.exact.get(row * self.dimensions..(row + 1) * self.dimensions)?;
        Some(Composed { vector: UnitVector::of_halves(exact), pieces: self.pieces.get(row)?.clone() })
    }

    /// How many rows contain each piece.
    pub(super) fn piece_counts(&self, pieces: &[u16]) -> PieceCounts {
        let count = |piece: &u16| self.piece_counts.get(piece).copied().unwrap_or_default();
        PieceCounts { chunks: saturating_u32(self.chunks.len()), counts: pieces.iter().map(count).collect() }
    }

    /// How many rows of a document contain each piece.
    pub(super) fn piece_counts_of(&self, document: Uuid, pieces: &[u16]) -> PieceCounts {
        let rows = self.by_document.get(&document).map(Vec::as_slice).unwrap_or_default();
        let own: Vec<&Box<[u16]>> = rows.iter().filter_map(|row| self.pieces.get(*row)).collect();
        let count =
            |piece: &u16| saturating_u32(own.iter().filter(|row| row.binary_search(piece).is_ok()).count());
        PieceCounts { chunks: saturating_u32(rows.len()), counts: pieces.iter().map(count).collect() }
    }

    /// The vectors of a document by the ordinals of its chunks.
    pub(super) fn vectors(&self, document: Uuid) -> Vec<(u32, UnitVector)> {
        let rows = self.by_document.get(&document).map(Vec::as_slice).unwrap_or_default();
        let vector = |row: &usize| {
            let start = row * self.dimensions;
            let exact = self.exact.get(start..start + self.dimensions)?;
            Some((self.chunks.get(*row)?.ordinal, UnitVector::of_halves(exact)))
        };
        let mut vectors: Vec<(u32, UnitVector)> = rows.iter().filter_map(vector).collect();
        vectors.sort_unstable_by_key(|(ordinal, _)| *ordinal);
        vectors
    }
}

fn saturating_u32(rows: usize) -> u32 {
    u32::try_from(rows).unwrap_or(u32::MAX)
}

/// A filter of rows by container and document.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RowFilter<'a> {
    pub(crate) containers: Option<&'a HashSet<Uuid>>,
    pub(crate) documents: Option<&'a HashSet<Uuid>>,
}

impl RowFilter<'_> {
    /// Whether a folder or source passes.
    pub(crate) fn has_container(&self, container: Option<Uuid>) -> bool {
        self.containers
            .is_none_or(|containers| container.is_some_and(|container| containers.contains(&container)))
    }

    /// Whether a document in that container passes.
    pub(crate) fn has(&self, document: Uuid, container: Option<Uuid>) -> bool {
        self.has_container(container) && self.documents.is_none_or(|documents| documents.contains(&document))
    }
}

/// Interned containers, so that a row takes four bytes and a filter needs no hashing per row.
#[derive(Debug, Default)]
struct ContainerTable {
    ids: Vec<Option<Uuid>>,
    indices: HashMap<Option<Uuid>, u32>,
}

impl ContainerTable {
    fn intern(&mut self, container: Option<Uuid>) -> u32 {
        let next = u32::try_from(self.ids.len()).unwrap_or(u32::MAX);
        *self.indices.entry(container).or_insert_with(|| {
            self.ids.push(container);
            next
        })
    }

    /// For each index, whether its container is searched.
    fn within(&self, searched: &HashSet<Uuid>) -> Vec<bool> {
        let is_searched = |container: &Option<Uuid>| container.is_some_and(|id| searched.contains(&id));
        self.ids.iter().map(is_searched).collect()
    }
}

/// `swap_remove` for blocks of a flat array.
fn swap_remove_block<T: Copy>(flat: &mut Vec<T>, row: usize, length: usize) {
    let last = flat.len().saturating_sub(length);
    flat.copy_within(last.., row * length);
    flat.truncate(last);
}
