//! Nearest documents of a document, by the vectors of their chunks.

use std::collections::{HashMap, HashSet};

use cairn_index::vectors::UnitVector;
use cairn_index::{Candidates, ChunkId, Engine, ListQuery, Query};
use uuid::Uuid;

use crate::error::Error;
use crate::search::tuning::{RELATED_COMPARED, RELATED_DOCUMENTS, RELATED_NEIGHBOURS, RELATED_PASSAGES};

/// A neighbour of the given document.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Near {
    /// The chunk of the given document in the best pair.
    pub(super) from: ChunkId,
    /// The chunk of this document in the best pair.
    pub(super) to: ChunkId,
    /// The cosine of the centroids of both documents, 0 to 1.
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

/// The nearest documents, best first; ties by id. The work is bounded, whatever the length of the document.
pub(super) async fn documents(
    engine: &dyn Engine,
    workspace: Uuid,
    containers: Option<HashSet<Uuid>>,
    document: Uuid,
) -> Result<Vec<Near>, Error> {
    let own = engine.vectors(workspace, vec![document]).await?.remove(&document).unwrap_or_default();
    let Some(known) = GivenDocument::of(document, &own) else { return Ok(Vec::new()) };
    let vectors = std::iter::once(&known.whole).chain(known.passages.iter().map(|(_, vector)| vector));
    let lists =
        vectors.map(|vector| ListQuery { vector: Some(vector.as_slice().into()), ..ListQuery::default() });
    let query = Query {
        workspace,
        containers,
        documents: None,
        // The limit includes the document's own chunks, which are found, too.
        limit: RELATED_NEIGHBOURS.saturating_add(own.len()),
        lists: lists.collect(),
    };
    let neighbours = Neighbours::of(&known, engine.candidates(query).await?);
    let best = neighbours.best();
    let vectors = engine.vectors(workspace, best.clone()).await?;
    let compared = tokio::task::spawn_blocking(move || compare_all(&known, &neighbours, &best, &vectors));
    Ok(compared.await?)
}

/// The neighbours that the searches found.
#[derive(Default)]
struct Neighbours {
    /// The nearest pair of chunks with each document.
    pairs: HashMap<Uuid, Pair>,
    /// The maximal cosine with each document.
    cosines: HashMap<Uuid, f32>,
}

impl Neighbours {
    /// Of the whole, then of each passage.
    fn of(known: &GivenDocument, lists: Vec<Candidates>) -> Self {
        let mut neighbours = Self::default();
        let places = std::iter::once(None).chain(known.passages.iter().map(|(place, _)| Some(*place)));
        for (place, list) in places.zip(lists) {
            for hit in list.cosines.into_iter().filter(|hit| hit.chunk.document != known.document) {
                let best = neighbours.cosines.entry(hit.chunk.document).or_insert(hit.score);
                *best = best.max(hit.score);
                if let Some(place) = place {
                    keep_best(&mut neighbours.pairs, Pair { from: place, to: hit.chunk, cosine: hit.score });
                }
            }
        }
        neighbours
    }

    /// The documents that are compared.
    fn best(&self) -> Vec<Uuid> {
        let mut ranked: Vec<(Uuid, f32)> = self.cosines.iter().map(|(id, cosine)| (*id, *cosine)).collect();
        ranked.sort_unstable_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        ranked.truncate(RELATED_DOCUMENTS);
        ranked.into_iter().map(|(id, _)| id).collect()
    }
}

fn compare_all(
    known: &GivenDocument,
    neighbours: &Neighbours,
    documents: &[Uuid],
    vectors: &HashMap<Uuid, Vec<(u32, UnitVector)>>,
) -> Vec<Near> {
    let compared = documents.iter().filter_map(|document| {
        compare(known, *document, vectors.get(document)?, neighbours.pairs.get(document).copied())
    });
    let mut near: Vec<Near> = compared.filter(|near| near.score() > 0.0).collect();
    near.sort_unstable_by(|one, other| other.score().total_cmp(&one.score()).then(one.to.cmp(&other.to)));
    near
}

/// A chunk of the known document and one of another.
#[derive(Clone, Copy)]
struct Pair {
    from: u32,
    to: ChunkId,
    cosine: f32,
}

/// Ties by the earlier chunks, so that the order of the searches does not matter.
fn keep_best(nearest: &mut HashMap<Uuid, Pair>, pair: Pair) {
    let best = nearest.entry(pair.to.document).or_insert(pair);
    if is_better(pair, *best) {
        *best = pair;
    }
}

fn is_better(pair: Pair, than: Pair) -> bool {
    pair.cosine > than.cosine || (pair.cosine == than.cosine && (pair.from, pair.to) < (than.from, than.to))
}

/// The given document.
struct GivenDocument {
    document: Uuid,
    whole: Vec<f32>,
    /// Some of its chunks, at even distances.
    passages: Vec<(u32, Vec<f32>)>,
}

impl GivenDocument {
    /// `None` for a document without vectors.
    fn of(document: Uuid, own: &[(u32, UnitVector)]) -> Option<Self> {
        let own: Vec<(u32, Vec<f32>)> = own.iter().map(|(place, vector)| (*place, vector.to_f32())).collect();
        let whole = mean(own.iter().map(|(_, vector)| vector.as_slice()))?;
        Some(Self { document, whole, passages: evenly(&own, RELATED_PASSAGES) })
    }
}

fn compare(
    known: &GivenDocument,
    candidate: Uuid,
    theirs: &[(u32, UnitVector)],
    found: Option<Pair>,
) -> Option<Near> {
    let theirs: Vec<(u32, Vec<f32>)> =
        theirs.iter().take(RELATED_COMPARED).map(|(place, vector)| (*place, vector.to_f32())).collect();
    let whole = mean(theirs.iter().map(|(_, vector)| vector.as_slice()))?;
    let mut best = found;
    for (from, passage) in &known.passages {
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
        whole: cosine(&known.whole, &whole).clamp(0.0, 1.0),
        passage: best.cosine.clamp(0.0, 1.0),
    })
}

/// Samples items at even distances, from the first to the last.
fn evenly<T: Clone>(items: &[T], most: usize) -> Vec<T> {
    if items.len() <= most {
        return items.to_vec();
    }
    let last = items.len() - 1;
    (0..most).filter_map(|step| items.get(step * last / (most - 1).max(1)).cloned()).collect()
}

/// The centroid of unit vectors; `None` without any.
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
    use std::sync::Arc;

    use cairn_index::embedded::{EmbeddedEngine, Index};
    use cairn_index::words::Language;
    use cairn_index::{Batch, IndexedChunk, IndexedDocument};
    use tempfile::TempDir;

    use super::*;

    const WORKSPACE: Uuid = Uuid::from_u128(1);

    struct Fixture {
        engine: EmbeddedEngine,
        _folder: TempDir,
    }

    impl Fixture {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let index = Arc::new(Index::open(folder.path(), "test", 3).unwrap());
            Self { engine: EmbeddedEngine::new(index, EmbeddedEngine::permits()), _folder: folder }
        }

        async fn put(&self, document: u128, container: Option<u128>, rows: &[[f32; 3]]) {
            let chunk = |row: &[f32; 3]| IndexedChunk {
                text: "text".to_owned(),
                heading_path: Vec::new(),
                table_header: String::new(),
                start_line: 1,
                end_line: 1,
                embedding: row.to_vec(),
                pieces: Vec::new(),
            };
            let document = IndexedDocument {
                workspace: WORKSPACE,
                document: Uuid::from_u128(document),
                container: container.map(Uuid::from_u128),
                holder: None,
                kind: String::new(),
                title: String::new(),
                path: String::new(),
                tags: Vec::new(),
                language: Language::English,
                content_hash: String::new(),
                updated_at: 0,
                chunks: rows.iter().map(chunk).collect(),
            };
            let batch = Batch { documents: vec![document], ..Batch::default() };
            self.engine.apply(batch).await.unwrap();
        }

        async fn near(&self, containers: Option<&HashSet<Uuid>>) -> Vec<Near> {
            documents(&self.engine, WORKSPACE, containers.cloned(), Uuid::from_u128(1)).await.unwrap()
        }
    }

    fn ids(near: &[Near]) -> Vec<u128> {
        near.iter().map(|near| near.to.document.as_u128()).collect()
    }

    #[tokio::test]
    async fn what_is_near_as_a_whole_and_in_a_passage_comes_first() {
        let index = Fixture::new();
        index.put(1, None, &[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]).await;
        index.put(2, None, &[[1.0, 0.1, 0.0], [0.1, 1.0, 0.0]]).await;
        // One passage is the same, the rest is about something else.
        index.put(3, None, &[[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [0.1, 0.0, 1.0]]).await;
        index.put(4, None, &[[0.0, 0.0, 1.0]]).await;
        index.put(5, None, &[[-1.0, -1.0, 0.0]]).await;
        let near = index.near(None).await;
        assert_eq!(ids(&near), [2, 3], "neither itself nor what has nothing in common");
        assert_eq!((near[1].from.ordinal, near[1].to.ordinal), (0, 0));
        assert!(near[1].passage > 0.999 && near[1].whole < 0.5, "{near:?}");
        assert!(near[0].score() > near[1].score());
    }

    #[tokio::test]
    async fn a_scope_and_a_missing_document_find_nothing_else() {
        let index = Fixture::new();
        assert_eq!(index.near(None).await, []);
        index.put(1, Some(11), &[[1.0, 0.0, 0.0]]).await;
        index.put(2, Some(11), &[[1.0, 0.1, 0.0]]).await;
        index.put(3, Some(12), &[[1.0, 0.0, 0.0]]).await;
        let scope = HashSet::from([Uuid::from_u128(11)]);
        assert_eq!(ids(&index.near(Some(&scope)).await), [2]);
        assert_eq!(ids(&index.near(None).await), [3, 2]);
    }

    #[tokio::test]
    async fn a_long_document_does_not_hide_its_neighbours() {
        let index = Fixture::new();
        let rows: Vec<[f32; 3]> = (0..2_000_u16).map(|row| [1.0, f32::from(row) / 4_000.0, 0.0]).collect();
        index.put(1, None, &rows).await;
        index.put(2, None, &[[1.0, 0.3, 0.9]]).await;
        assert_eq!(ids(&index.near(None).await), [2]);
    }

    #[test]
    fn items_are_taken_at_even_distances() {
        let items: Vec<u32> = (0..100).collect();
        assert_eq!(evenly(&items, 4), [0, 33, 66, 99]);
        assert_eq!(evenly(&items[..3], 4), [0, 1, 2]);
        assert_eq!(evenly(&items, 1), [0]);
    }
}
