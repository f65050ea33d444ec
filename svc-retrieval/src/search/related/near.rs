//! Which documents are near one, by the vectors of their chunks.

use std::collections::{HashMap, HashSet};

use cairn_index::ChunkId;
use cairn_index::vectors::{UnitVector, VectorIndex, VectorQuery};
use uuid::Uuid;

use crate::search::tuning::{RELATED_COMPARED, RELATED_DOCUMENTS, RELATED_NEIGHBOURS, RELATED_PASSAGES};

/// A document near the known one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Near {
    /// The chunk of the known document that is nearest to one of this document.
    pub(super) from: ChunkId,
    /// The chunk of this document that it is nearest to.
    pub(super) to: ChunkId,
    /// The cosine of both documents as wholes, 0 to 1.
    pub(super) whole: f32,
    /// The cosine of the two chunks, 0 to 1.
    pub(super) passage: f32,
}

impl Near {
    /// Half for what both are about as wholes, half for the passages that meet: a licence that many files begin with
    /// makes no two of them related, nor does one long file that has everything in it.
    pub(super) fn score(&self) -> f32 {
        f32::midpoint(self.whole, self.passage)
    }
}

/// The documents nearest to a document, best first; equal ones go by their ids. Work is bounded however long it is.
pub(super) fn documents(
    index: &dyn VectorIndex,
    workspace: Uuid,
    containers: Option<&HashSet<Uuid>>,
    document: Uuid,
) -> Result<Vec<Near>, cairn_index::Error> {
    let own = index.vectors(workspace, document)?;
    let own: Vec<(u32, Vec<f32>)> = own.iter().map(|(place, vector)| (*place, vector.to_f32())).collect();
    let Some(whole) = mean(own.iter().map(|(_, vector)| vector.as_slice())) else {
        return Ok(Vec::new());
    };
    let passages = evenly(&own, RELATED_PASSAGES);
    // Besides the neighbours it finds the document's own chunks.
    let limit = RELATED_NEIGHBOURS.saturating_add(own.len());
    let mut nearest: HashMap<Uuid, Pair> = HashMap::new();
    let mut candidates: HashMap<Uuid, f32> = HashMap::new();
    for (place, vector) in std::iter::once((None, &whole)).chain(passages.iter().map(|(p, v)| (Some(*p), v)))
    {
        let query = VectorQuery { workspace, vector, containers, documents: None, limit };
        for hit in index.search(&query)?.into_iter().filter(|hit| hit.chunk.document != document) {
            let best = candidates.entry(hit.chunk.document).or_insert(hit.score);
            *best = best.max(hit.score);
            if let Some(place) = place {
                keep_best(&mut nearest, Pair { from: place, to: hit.chunk, cosine: hit.score });
            }
        }
    }
    let mut ranked: Vec<(Uuid, f32)> = candidates.into_iter().collect();
    ranked.sort_unstable_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
    ranked.truncate(RELATED_DOCUMENTS);

    let mut near = Vec::with_capacity(ranked.len());
    for (candidate, _) in ranked {
        let theirs = index.vectors(workspace, candidate)?;
        let known = Known { document, whole: &whole, passages: &passages };
        near.extend(compare(&known, candidate, &theirs, nearest.get(&candidate).copied()));
    }
    near.retain(|near| near.score() > 0.0);
    near.sort_unstable_by(|one, other| other.score().total_cmp(&one.score()).then(one.to.cmp(&other.to)));
    Ok(near)
}

/// A chunk of the known document and one of another.
#[derive(Clone, Copy)]
struct Pair {
    from: u32,
    to: ChunkId,
    cosine: f32,
}

/// Equal pairs: the earlier chunks, so that the order of the searches makes no difference.
fn keep_best(nearest: &mut HashMap<Uuid, Pair>, pair: Pair) {
    let best = nearest.entry(pair.to.document).or_insert(pair);
    if is_better(pair, *best) {
        *best = pair;
    }
}

fn is_better(pair: Pair, than: Pair) -> bool {
    pair.cosine > than.cosine || (pair.cosine == than.cosine && (pair.from, pair.to) < (than.from, than.to))
}

struct Known<'a> {
    document: Uuid,
    whole: &'a [f32],
    passages: &'a [(u32, Vec<f32>)],
}

fn compare(
    known: &Known<'_>,
    candidate: Uuid,
    theirs: &[(u32, UnitVector)],
    found: Option<Pair>,
) -> Option<Near> {
    let theirs: Vec<(u32, Vec<f32>)> =
        theirs.iter().take(RELATED_COMPARED).map(|(place, vector)| (*place, vector.to_f32())).collect();
    let whole = mean(theirs.iter().map(|(_, vector)| vector.as_slice()))?;
    let mut best = found;
    for (from, passage) in known.passages {
        for (ordinal, vector) in &theirs {
            let to = ChunkId { document: candidate, ordinal: *ordinal };
            let pair = Pair { from: *from, to, cosine: cosine(passage, vector) };
            if best.is_none_or(|best| is_better(pair, best)) {
                best = Some(pair);
            }
        }
    }
    let best = best?;
    Some(Near {
        from: ChunkId { document: known.document, ordinal: best.from },
        to: best.to,
        whole: cosine(known.whole, &whole).clamp(0.0, 1.0),
        passage: best.cosine.clamp(0.0, 1.0),
    })
}

/// So many items, from the first to the last at even distances.
fn evenly<T: Clone>(items: &[T], most: usize) -> Vec<T> {
    if items.len() <= most {
        return items.to_vec();
    }
    let last = items.len() - 1;
    (0..most).filter_map(|step| items.get(step * last / (most - 1).max(1)).cloned()).collect()
}

/// The mean of unit vectors; none of none.
fn mean<'a>(vectors: impl Iterator<Item = &'a [f32]>) -> Option<Vec<f32>> {
    let mut sum: Vec<f32> = Vec::new();
    for vector in vectors {
        sum.resize(vector.len(), 0.0);
        sum.iter_mut().zip(vector).for_each(|(sum, number)| *sum += number);
    }
    (!sum.is_empty()).then_some(sum)
}

fn cosine(one: &[f32], other: &[f32]) -> f32 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    let lengths = (dot(one, one) * dot(other, other)).sqrt();
    if lengths > 0.0 { dot(one, other) / lengths } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use cairn_index::vectors::{DocumentVectors, EmbeddedVectors};

    use super::*;

    const WORKSPACE: Uuid = Uuid::from_u128(1);

    fn put(index: &EmbeddedVectors, document: u128, container: Option<u128>, rows: &[[f32; 3]]) {
        let rows = (0..).zip(rows).map(|(place, row)| (place, UnitVector::new(row).unwrap())).collect();
        let container = container.map(Uuid::from_u128);
        let vectors = DocumentVectors { document: Uuid::from_u128(document), container, rows };
        index.upsert(WORKSPACE, vectors).unwrap();
    }

    fn index() -> EmbeddedVectors {
        EmbeddedVectors::in_memory(NonZeroUsize::new(3).unwrap())
    }

    fn near(index: &EmbeddedVectors, containers: Option<&HashSet<Uuid>>) -> Vec<Near> {
        documents(index, WORKSPACE, containers, Uuid::from_u128(1)).unwrap()
    }

    fn ids(near: &[Near]) -> Vec<u128> {
        near.iter().map(|near| near.to.document.as_u128()).collect()
    }

    #[test]
    fn what_is_near_as_a_whole_and_in_a_passage_comes_first() {
        let index = index();
        put(&index, 1, None, &[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]);
        put(&index, 2, None, &[[1.0, 0.1, 0.0], [0.1, 1.0, 0.0]]);
        // One passage is the same, the rest is about something else.
        put(&index, 3, None, &[[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [0.1, 0.0, 1.0]]);
        put(&index, 4, None, &[[0.0, 0.0, 1.0]]);
        put(&index, 5, None, &[[-1.0, -1.0, 0.0]]);
        let near = near(&index, None);
        assert_eq!(ids(&near), [2, 3], "neither itself nor what has nothing in common");
        assert_eq!((near[1].from.ordinal, near[1].to.ordinal), (0, 0));
        assert!(near[1].passage > 0.999 && near[1].whole < 0.5, "{near:?}");
        assert!(near[0].score() > near[1].score());
    }

    #[test]
    fn a_scope_and_a_missing_document_find_nothing_else() {
        let index = index();
        assert_eq!(near(&index, None), []);
        put(&index, 1, Some(11), &[[1.0, 0.0, 0.0]]);
        put(&index, 2, Some(11), &[[1.0, 0.1, 0.0]]);
        put(&index, 3, Some(12), &[[1.0, 0.0, 0.0]]);
        let scope = HashSet::from([Uuid::from_u128(11)]);
        assert_eq!(ids(&near(&index, Some(&scope))), [2]);
        assert_eq!(ids(&near(&index, None)), [3, 2]);
    }

    #[test]
    fn a_long_document_does_not_hide_its_neighbours() {
        let index = index();
        let rows: Vec<[f32; 3]> = (0..2_000_u16).map(|row| [1.0, f32::from(row) / 4_000.0, 0.0]).collect();
        put(&index, 1, None, &rows);
        put(&index, 2, None, &[[1.0, 0.3, 0.9]]);
        assert_eq!(ids(&near(&index, None)), [2]);
    }

    #[test]
    fn items_are_taken_at_even_distances() {
        let items: Vec<u32> = (0..100).collect();
        assert_eq!(evenly(&items, 4), [0, 33, 66, 99]);
        assert_eq!(evenly(&items[..3], 4), [0, 1, 2]);
        assert_eq!(evenly(&items, 1), [0]);
    }
}
