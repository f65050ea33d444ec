//! What every [`VectorIndex`] must do. Each check gets an empty engine of two dimensions.

use std::collections::HashSet;

use uuid::Uuid;

use super::{DocumentVectors, Error, UnitVector, VectorIndex, VectorQuery};
use crate::{ChunkId, Hit};

/// The name of a check and the check.
pub(crate) type Check = (&'static str, fn(&dyn VectorIndex));

/// All checks.
pub(crate) const CHECKS: &[Check] = &[
    ("finds the nearest first", finds_the_nearest_first),
    ("scores are cosines", scores_are_cosines),
    ("zero vectors never match", zero_vectors_never_match),
    ("replaces and deletes documents", replaces_and_deletes_documents),
    ("keeps workspaces apart", keeps_workspaces_apart),
    ("filters by container", filters_by_container),
    ("filters by document", filters_by_document),
    ("scores given chunks in order", scores_given_chunks_in_order),
    ("refuses other dimensions", refuses_other_dimensions),
    ("gives the vectors of a document", gives_the_vectors_of_a_document),
];

const WORKSPACE: Uuid = Uuid::from_u128(1);
const OTHER_WORKSPACE: Uuid = Uuid::from_u128(2);

fn id(document: u128, ordinal: u32) -> ChunkId {
    ChunkId { document: Uuid::from_u128(document), ordinal }
}

fn vectors(document: u128, container: Option<Uuid>, rows: &[[f32; 2]]) -> DocumentVectors {
    let rows = (0..).zip(rows).filter_map(|(ordinal, row)| Some((ordinal, UnitVector::new(row)?)));
    DocumentVectors { document: Uuid::from_u128(document), container, rows: rows.collect() }
}

fn put(index: &dyn VectorIndex, document: u128, rows: &[[f32; 2]]) {
    index.upsert(WORKSPACE, vectors(document, None, rows)).unwrap();
}

fn search(
    index: &dyn VectorIndex,
    vector: &[f32],
    containers: Option<&HashSet<Uuid>>,
    limit: usize,
) -> Vec<Hit> {
    index.search(&VectorQuery { workspace: WORKSPACE, vector, containers, documents: None, limit }).unwrap()
}

fn found(index: &dyn VectorIndex, vector: [f32; 2]) -> Vec<ChunkId> {
    search(index, &vector, None, 10).into_iter().map(|hit| hit.chunk).collect()
}

fn finds_the_nearest_first(index: &dyn VectorIndex) {
    put(index, 1, &[[1.0, 0.0], [0.0, 1.0]]);
    put(index, 2, &[[3.0, 3.0], [3.0, 0.0]]);
    assert_eq!(found(index, [1.0, 0.1]), [id(1, 0), id(2, 1), id(2, 0), id(1, 1)]);
    let two: Vec<ChunkId> = search(index, &[0.0, 2.0], None, 2).iter().map(|hit| hit.chunk).collect();
    assert_eq!(two, [id(1, 1), id(2, 0)]);
    assert!(search(index, &[1.0, 0.0], None, 0).is_empty());
}

fn scores_are_cosines(index: &dyn VectorIndex) {
    put(index, 1, &[[5.0, 0.0], [1.0, 1.0], [-1.0, 0.0]]);
    let scores: Vec<f32> = search(index, &[2.0, 0.0], None, 10).iter().map(|hit| hit.score).collect();
    for (score, expected) in scores.iter().zip([1.0, std::f32::consts::FRAC_1_SQRT_2, -1.0]) {
        assert!((score - expected).abs() < 0.001, "{score} is not {expected}");
    }
    assert_eq!(scores.len(), 3);
}

fn zero_vectors_never_match(index: &dyn VectorIndex) {
    put(index, 1, &[[0.0, 0.0], [1.0, 0.0]]);
    assert_eq!(found(index, [1.0, 0.0]), [id(1, 1)]);
    assert_eq!(found(index, [0.0, 0.0]), []);
    let scores = index.scores(WORKSPACE, &[0.0, 0.0], &[id(1, 1)]).unwrap();
    assert_eq!(scores, [Hit { chunk: id(1, 1), score: 0.0 }]);
}

fn replaces_and_deletes_documents(index: &dyn VectorIndex) {
    put(index, 1, &[[1.0, 0.0], [0.9, 0.1], [0.8, 0.2]]);
    put(index, 2, &[[0.5, 0.5], [0.4, 0.6]]);
    put(index, 1, &[[0.0, 1.0]]);
    assert_eq!(found(index, [1.0, 0.0]), [id(2, 0), id(2, 1), id(1, 0)]);
    put(index, 3, &[[1.0, 0.0]]);
    index.delete(WORKSPACE, Uuid::from_u128(2)).unwrap();
    index.delete(WORKSPACE, Uuid::from_u128(9)).unwrap();
    assert_eq!(found(index, [1.0, 0.0]), [id(3, 0), id(1, 0)]);
    put(index, 3, &[]);
    index.delete(WORKSPACE, Uuid::from_u128(1)).unwrap();
    assert_eq!(found(index, [1.0, 0.0]), []);
}

fn keeps_workspaces_apart(index: &dyn VectorIndex) {
    put(index, 1, &[[1.0, 0.0]]);
    index.upsert(OTHER_WORKSPACE, vectors(2, None, &[[1.0, 0.0]])).unwrap();
    assert_eq!(found(index, [1.0, 0.0]), [id(1, 0)]);
    assert_eq!(index.scores(WORKSPACE, &[1.0, 0.0], &[id(2, 0)]).unwrap()[0].score, 0.0);
    index.delete(WORKSPACE, Uuid::from_u128(2)).unwrap();
    assert!(index.scores(OTHER_WORKSPACE, &[1.0, 0.0], &[id(2, 0)]).unwrap()[0].score > 0.9);
}

fn filters_by_container(index: &dyn VectorIndex) {
    let [folder, source] = [11, 12].map(Uuid::from_u128);
    index.upsert(WORKSPACE, vectors(1, Some(folder), &[[1.0, 0.0]])).unwrap();
    index.upsert(WORKSPACE, vectors(2, Some(source), &[[1.0, 0.0]])).unwrap();
    put(index, 3, &[[1.0, 0.0]]);
    let within = |containers: &[Uuid]| -> Vec<ChunkId> {
        let containers = containers.iter().copied().collect();
        search(index, &[1.0, 0.0], Some(&containers), 10).iter().map(|hit| hit.chunk).collect()
    };
    assert_eq!(within(&[folder]), [id(1, 0)]);
    assert_eq!(within(&[folder, source]), [id(1, 0), id(2, 0)]);
    assert_eq!(within(&[]), []);
}

fn filters_by_document(index: &dyn VectorIndex) {
    let folder = Uuid::from_u128(11);
    index.upsert(WORKSPACE, vectors(1, Some(folder), &[[1.0, 0.0], [0.0, 1.0]])).unwrap();
    put(index, 2, &[[1.0, 0.0]]);
    put(index, 3, &[[1.0, 0.0]]);
    let within = |containers: Option<&HashSet<Uuid>>, documents: &[u128]| -> Vec<ChunkId> {
        let documents = documents.iter().copied().map(Uuid::from_u128).collect();
        let vector = &[1.0, 0.0];
        let documents = Some(&documents);
        let query = VectorQuery { workspace: WORKSPACE, vector, containers, documents, limit: 10 };
        index.search(&query).unwrap().iter().map(|hit| hit.chunk).collect()
    };
    assert_eq!(within(None, &[1, 3, 9]), [id(1, 0), id(3, 0), id(1, 1)]);
    assert_eq!(within(Some(&HashSet::from([folder])), &[1, 3]), [id(1, 0), id(1, 1)]);
    assert_eq!(within(None, &[9]), []);
}

fn scores_given_chunks_in_order(index: &dyn VectorIndex) {
    put(index, 1, &[[1.0, 0.0], [0.0, 1.0]]);
    let chunks = [id(1, 1), id(7, 0), id(1, 0), id(1, 5)];
    let scores = index.scores(WORKSPACE, &[1.0, 0.0], &chunks).unwrap();
    let order: Vec<ChunkId> = scores.iter().map(|hit| hit.chunk).collect();
    assert_eq!(order, chunks);
    let scores: Vec<f32> = scores.iter().map(|hit| hit.score.round()).collect();
    assert_eq!(scores, [0.0, 0.0, 1.0, 0.0]);
}

fn refuses_other_dimensions(index: &dyn VectorIndex) {
    let three = [1.0, 0.0, 0.0];
    let query =
        VectorQuery { workspace: WORKSPACE, vector: &three, containers: None, documents: None, limit: 1 };
    assert!(matches!(index.search(&query), Err(Error::Dimensions { expected: 2, given: 3 })));
    assert!(index.scores(WORKSPACE, &three, &[]).is_err());
    let document = Uuid::from_u128(1);
    let rows = vec![(0, UnitVector::new(&three).unwrap())];
    assert!(index.upsert(WORKSPACE, DocumentVectors { document, container: None, rows }).is_err());
}

fn gives_the_vectors_of_a_document(index: &dyn VectorIndex) {
    put(index, 1, &[[0.0, 2.0], [0.0, 0.0], [3.0, 0.0]]);
    put(index, 2, &[[1.0, 1.0]]);
    let given = |workspace, document| -> Vec<(u32, Vec<f32>)> {
        let vectors = index.vectors(workspace, Uuid::from_u128(document)).unwrap();
        vectors
            .into_iter()
            .map(|(place, vector)| (place, vector.to_f32().iter().map(|number| number.round()).collect()))
            .collect()
    };
    assert_eq!(given(WORKSPACE, 1), [(0, vec![0.0, 1.0]), (2, vec![1.0, 0.0])]);
    assert_eq!(given(OTHER_WORKSPACE, 1), []);
    assert_eq!(given(WORKSPACE, 9), []);
    put(index, 1, &[[1.0, 0.0]]);
    assert_eq!(given(WORKSPACE, 1), [(0, vec![1.0, 0.0])]);
}

/// The dimensions of an engine for [`recall`].
pub(crate) const RECALL_DIMENSIONS: usize = 64;

/// The share of the ten nearest vectors that a search finds, over 3 000 vectors in 30 clusters.
pub(crate) fn recall(index: &dyn VectorIndex) -> f32 {
    const LIMIT: usize = 10;
    let mut numbers = Numbers(42);
    let centers: Vec<Vec<f32>> = (0..30).map(|_| numbers.vector(RECALL_DIMENSIONS)).collect();
    let mut vectors = Vec::new();
    for document in 0..30_u128 {
        let mut rows = Vec::new();
        for ordinal in 0..100 {
            let vector = numbers.near(&centers[ordinal as usize % centers.len()], 0.5);
            rows.push((ordinal, UnitVector::new(&vector).unwrap()));
            vectors.push((id(document, ordinal), vector));
        }
        let document = Uuid::from_u128(document);
        index.upsert(WORKSPACE, DocumentVectors { document, container: None, rows }).unwrap();
    }

    let mut shared = 0;
    for center in &centers {
        let query = numbers.near(center, 0.5);
        let exact = exact_best(&vectors, &query, LIMIT);
        shared += search(index, &query, None, LIMIT).iter().filter(|hit| exact.contains(&hit.chunk)).count();
    }
    shared as f32 / (centers.len() * LIMIT) as f32
}

/// A repeatable source of numbers (Knuth's MMIX multiplier and increment).
struct Numbers(u64);

impl Numbers {
    /// Uniform in -1 to 1.
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f32 / 8_388_608.0 - 1.0
    }

    fn vector(&mut self, dimensions: usize) -> Vec<f32> {
        (0..dimensions).map(|_| self.next()).collect()
    }

    /// `center` with noise of the given strength.
    fn near(&mut self, center: &[f32], noise: f32) -> Vec<f32> {
        center.iter().map(|number| number + noise * self.next()).collect()
    }
}

fn exact_best(vectors: &[(ChunkId, Vec<f32>)], query: &[f32], limit: usize) -> HashSet<ChunkId> {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    let mut scored: Vec<(f32, ChunkId)> = vectors
        .iter()
        .map(|(chunk, vector)| (dot(vector, query) / dot(vector, vector).sqrt(), *chunk))
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored.into_iter().take(limit).map(|(_, chunk)| chunk).collect()
}
