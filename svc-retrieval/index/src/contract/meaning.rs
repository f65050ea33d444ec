//! Semantic and hybrid search.

use std::collections::HashSet;
use std::sync::Arc;

use uuid::Uuid;

use super::{OTHER_WORKSPACE, WORKSPACE, add, by_words, candidates, document, id, query};
use crate::{
    Batch, ChunkId, Engine, Error, Hit, IndexedChunk, IndexedDocument, ListQuery, ParsedQuery, Query,
};

fn by_meaning(vector: &[f32]) -> ListQuery {
    ListQuery { vector: Some(vector.into()), ..ListQuery::default() }
}

/// A document with these vectors as chunks; their texts do not matter.
fn vectors(number: u128, rows: &[impl AsRef<[f32]>]) -> IndexedDocument {
    let chunk = |row: &_| {
        let [plain]: [IndexedChunk; 1] = document(number, &["text"]).chunks.try_into().unwrap();
        IndexedChunk { embedding: AsRef::<[f32]>::as_ref(row).to_vec(), ..plain }
    };
    IndexedDocument { chunks: rows.iter().map(chunk).collect(), ..document(number, &[]) }
}

async fn put(index: &dyn Engine, number: u128, rows: &[impl AsRef<[f32]>]) {
    add(index, vec![vectors(number, rows)]).await;
}

fn ids(hits: &[Hit]) -> Vec<ChunkId> {
    hits.iter().map(|hit| hit.chunk).collect()
}

async fn nearest(index: &dyn Engine, vector: [f32; 2]) -> Vec<ChunkId> {
    ids(&candidates(index, query(by_meaning(&vector))).await.cosines)
}

pub(super) async fn finds_the_nearest_first(index: &dyn Engine) {
    put(index, 1, &[[1.0, 0.0], [0.0, 1.0]]).await;
    put(index, 2, &[[3.0, 3.0], [3.0, 0.0]]).await;
    assert_eq!(nearest(index, [1.0, 0.1]).await, [id(1, 0), id(2, 1), id(2, 0), id(1, 1)]);
    let limited = |limit| candidates(index, Query { limit, ..query(by_meaning(&[0.0, 2.0])) });
    assert_eq!(ids(&limited(2).await.cosines), [id(1, 1), id(2, 0)]);
    assert!(limited(0).await.cosines.is_empty());
    // A replaced document has only its new vectors, and a deleted one has none.
    put(index, 1, &[[0.0, 1.0]]).await;
    let deletions = vec![(WORKSPACE, Uuid::from_u128(2)), (WORKSPACE, Uuid::from_u128(9))];
    index.apply(Batch { deletions, ..Batch::default() }).await.unwrap();
    assert_eq!(nearest(index, [0.1, 1.0]).await, [id(1, 0)]);
}

pub(super) async fn scores_are_cosines(index: &dyn Engine) {
    put(index, 1, &[[5.0, 0.0], [1.0, 1.0], [-1.0, 0.0]]).await;
    let found = candidates(index, query(by_meaning(&[2.0, 0.0]))).await;
    assert_eq!(found.words, []);
    // A negative cosine is no evidence.
    assert_eq!(found.cosines.len(), 2);
    for (hit, expected) in found.cosines.iter().zip([1.0, std::f32::consts::FRAC_1_SQRT_2]) {
        assert!((hit.score - expected).abs() < 0.001, "{} is not {expected}", hit.score);
    }
}

pub(super) async fn zero_vectors_never_match(index: &dyn Engine) {
    put(index, 1, &[[0.0, 0.0], [1.0, 0.0]]).await;
    assert_eq!(nearest(index, [1.0, 0.0]).await, [id(1, 1)]);
    assert_eq!(nearest(index, [0.0, 0.0]).await, []);
    let both = ListQuery { vector: Some([0.0, 0.0].into()), ..by_words("text") };
    let found = candidates(index, query(both)).await;
    assert!(found.words.len() == 2 && found.cosines.iter().all(|hit| hit.score == 0.0), "{found:?}");
}

pub(super) async fn finds_nothing_that_is_excluded(index: &dyn Engine) {
    add(index, vec![document(1, &["red apple", "green apple", "green pear"]), document(2, &["green"])]).await;
    let without = async |texts: &[&str]| {
        let without = texts.iter().map(|text| Arc::new(ParsedQuery::parse(text))).collect();
        let list_query = ListQuery { without, ..by_meaning(&[1.0, 0.0]) };
        ids(&candidates(index, query(list_query)).await.cosines)
    };
    assert_eq!(without(&["-green"]).await, [id(1, 0)]);
    assert_eq!(without(&["fruit -\"green apple\" -red"]).await, [id(1, 2), id(2, 0)]);
    assert_eq!(without(&["-pear", "-red"]).await, [id(1, 1), id(2, 0)]);
    assert_eq!(without(&["green", "-the"]).await.len(), 4);
    let words = ListQuery { without: vec![Arc::new(ParsedQuery::parse("-red"))], ..by_words("apple -pear") };
    assert_eq!(ids(&candidates(index, query(words.clone())).await.words), [id(1, 1)]);
    // The exclusions of the lexical query also apply to semantic hits.
    let both = ListQuery { vector: Some([1.0, 0.0].into()), ..words };
    assert_eq!(ids(&candidates(index, query(both)).await.cosines), [id(1, 1), id(2, 0)]);
}

pub(super) async fn looks_farther_where_exclusions_take_much(index: &dyn Engine) {
    let many = vec!["near excluded"; 40];
    add(index, vec![document(1, &many)]).await;
    put(index, 2, &[[0.5, 0.5]]).await;
    let without = vec![Arc::new(ParsedQuery::parse("-excluded"))];
    let list_query = ListQuery { without, ..by_meaning(&[1.0, 0.0]) };
    let query = Query { limit: 5, ..query(list_query) };
    assert_eq!(ids(&candidates(index, query).await.cosines), [id(2, 0)]);
}

pub(super) async fn adds_the_cosines_of_what_the_words_found(index: &dyn Engine) {
    let mut away = document(1, &["zebra"]);
    away.chunks[0].embedding = vec![-1.0, 0.0];
    let mut without = document(2, &["zebra and more"]);
    without.chunks[0].embedding = vec![0.0, 0.0];
    add(index, vec![away, without, document(3, &["something else"])]).await;
    let both = ListQuery { vector: Some([1.0, 0.0].into()), ..by_words("zebra") };
    let found = candidates(index, query(both)).await;
    assert_eq!(ids(&found.words), [id(1, 0), id(2, 0)]);
    assert_eq!(ids(&found.cosines), [id(3, 0), id(2, 0), id(1, 0)]);
    let rounded: Vec<f32> = found.cosines.iter().map(|hit| hit.score.round()).collect();
    assert_eq!(rounded, [1.0, 0.0, -1.0]);
}

pub(super) async fn counts_meaning_for_nothing_where_a_phrase_is_met(index: &dyn Engine) {
    add(index, vec![document(1, &["the rate limit of reads"]), document(2, &["something near"])]).await;
    let both = |text| ListQuery { vector: Some([1.0, 0.0].into()), ..by_words(text) };
    let cosines = async |text| ids(&candidates(index, query(both(text))).await.cosines);
    assert_eq!(cosines("\"rate limit\"").await, [id(1, 0)]);
    assert_eq!(cosines("\"limit rate\"").await, [id(1, 0), id(2, 0)]);
}

pub(super) async fn answers_each_list(index: &dyn Engine) {
    add(index, vec![document(1, &["alpha", "beta"])]).await;
    let lists = vec![by_words("beta"), by_meaning(&[1.0, 0.0]), by_words("-beta"), by_words("alpha")];
    let found = index.candidates(Query { lists, ..query(ListQuery::default()) }).await.unwrap();
    let words: Vec<Vec<ChunkId>> = found.iter().map(|list| ids(&list.words)).collect();
    assert_eq!(words, [vec![id(1, 1)], Vec::new(), Vec::new(), vec![id(1, 0)]]);
    let cosines: Vec<usize> = found.iter().map(|list| list.cosines.len()).collect();
    assert_eq!(cosines, [0, 2, 0, 0]);
    let none = index.candidates(Query { lists: Vec::new(), ..query(ListQuery::default()) }).await.unwrap();
    assert_eq!(none, []);
}

pub(super) async fn keeps_vectors_of_workspaces_apart(index: &dyn Engine) {
    put(index, 1, &[[1.0, 0.0]]).await;
    add(index, vec![IndexedDocument { workspace: OTHER_WORKSPACE, ..vectors(2, &[[1.0, 0.0]]) }]).await;
    assert_eq!(nearest(index, [1.0, 0.0]).await, [id(1, 0)]);
    let deletions = vec![(WORKSPACE, Uuid::from_u128(2))];
    index.apply(Batch { deletions, ..Batch::default() }).await.unwrap();
    let elsewhere = Query { workspace: OTHER_WORKSPACE, ..query(by_meaning(&[1.0, 0.0])) };
    assert_eq!(ids(&candidates(index, elsewhere).await.cosines), [id(2, 0)]);
}

pub(super) async fn filters_meaning(index: &dyn Engine) {
    let [folder, source] = [11, 12].map(Uuid::from_u128);
    let inside = |container, number, rows: &[[f32; 2]]| IndexedDocument {
        container: Some(container),
        ..vectors(number, rows)
    };
    let documents = vec![
        inside(folder, 1, &[[1.0, 0.0], [0.5, 1.0]]),
        inside(source, 2, &[[1.0, 0.0]]),
        vectors(3, &[[1.0, 0.0]]),
    ];
    add(index, documents).await;
    let within = async |containers: Option<&[Uuid]>, documents: Option<&[u128]>| {
        let query = Query {
            containers: containers.map(|containers| containers.iter().copied().collect()),
            documents: documents.map(|numbers| numbers.iter().copied().map(Uuid::from_u128).collect()),
            ..query(by_meaning(&[1.0, 0.0]))
        };
        ids(&candidates(index, query).await.cosines)
    };
    assert_eq!(within(Some(&[folder]), None).await, [id(1, 0), id(1, 1)]);
    assert_eq!(within(Some(&[folder, source]), None).await, [id(1, 0), id(2, 0), id(1, 1)]);
    assert_eq!(within(Some(&[]), None).await, []);
    assert_eq!(within(None, Some(&[1, 3, 9])).await, [id(1, 0), id(3, 0), id(1, 1)]);
    assert_eq!(within(Some(&[folder]), Some(&[1, 3])).await, [id(1, 0), id(1, 1)]);
    assert_eq!(within(None, Some(&[9])).await, []);
}

pub(super) async fn refuses_other_dimensions(index: &dyn Engine) {
    let refused = index.candidates(query(by_meaning(&[1.0, 0.0, 0.0]))).await;
    assert!(matches!(refused, Err(Error::Dimensions { expected: 2, given: 3 })), "{refused:?}");
    let documents = vec![vectors(1, &[[1.0, 0.0, 0.0]])];
    let refused = index.apply(Batch { documents, ..Batch::default() }).await;
    assert!(matches!(refused, Err(Error::Dimensions { expected: 2, given: 3 })), "{refused:?}");
}

pub(super) async fn gives_the_vectors_of_documents(index: &dyn Engine) {
    put(index, 1, &[[0.0, 2.0], [0.0, 0.0], [3.0, 0.0]]).await;
    put(index, 2, &[[1.0, 1.0]]).await;
    let given = async |workspace, documents: &[u128], of: u128| -> Vec<(u32, Vec<f32>)> {
        let documents = documents.iter().copied().map(Uuid::from_u128).collect();
        let mut vectors = index.vectors(workspace, documents).await.unwrap();
        let vectors = vectors.remove(&Uuid::from_u128(of)).unwrap_or_default();
        vectors
            .into_iter()
            .map(|(place, vector)| (place, vector.to_f32().iter().map(|number| number.round()).collect()))
            .collect()
    };
    assert_eq!(given(WORKSPACE, &[2, 1], 1).await, [(0, vec![0.0, 1.0]), (2, vec![1.0, 0.0])]);
    assert_eq!(given(WORKSPACE, &[2, 1], 2).await, [(0, vec![1.0, 1.0])]);
    assert_eq!(given(WORKSPACE, &[2], 1).await, []);
    assert_eq!(given(OTHER_WORKSPACE, &[1], 1).await, []);
    assert_eq!(given(WORKSPACE, &[9], 9).await, []);
    put(index, 1, &[[1.0, 0.0]]).await;
    assert_eq!(given(WORKSPACE, &[1], 1).await, [(0, vec![1.0, 0.0])]);
}

pub(super) async fn gives_what_was_embedded_with_its_vector(index: &dyn Engine) {
    let mut first = document(1, &["one", "two", "three"]);
    first.title = "Guide".to_owned();
    first.chunks[0].heading_path = vec!["Top".to_owned()];
    first.chunks[0].embedding = vec![0.6, -0.8];
    first.chunks[1].embedding = vec![0.0, 0.0];
    let embedded = async |document| {
        let document = Uuid::from_u128(document);
        let mut embedded = index.embedded(WORKSPACE, vec![document]).await.unwrap();
        let mut chunks = embedded.remove(&document).unwrap_or_default();
        chunks.sort_by(|a, b| a.text.cmp(&b.text));
        chunks
    };
    assert_eq!(embedded(1).await, []);
    add(index, vec![first.clone(), document(2, &["other"])]).await;
    let texts: Vec<String> = embedded(1).await.into_iter().map(|chunk| chunk.text).collect();
    assert_eq!(texts, ["one", "three"]);
    let stored = embedded(1).await;
    let one = &stored[0];
    assert_eq!((one.title.as_str(), &one.heading_path), ("Guide", &first.chunks[0].heading_path));
    assert!((one.embedding[0] - 0.6).abs() < 0.001 && (one.embedding[1] + 0.8).abs() < 0.001);

    // Storing it again does not change it.
    let before = embedded(1).await;
    first.chunks[0].embedding.clone_from(&before[0].embedding);
    add(index, vec![first]).await;
    assert_eq!(embedded(1).await, before);
    let foreign = index.embedded(OTHER_WORKSPACE, vec![Uuid::from_u128(1)]).await.unwrap();
    assert!(foreign.into_values().all(|chunks| chunks.is_empty()));
}

/// The dimensions of an engine for [`recall`].
pub(crate) const RECALL_DIMENSIONS: usize = 64;

/// The share of the ten nearest vectors that a search finds, over 3 000 vectors in 30 clusters.
pub(crate) async fn recall(index: &dyn Engine) -> f32 {
    const LIMIT: usize = 10;
    let mut numbers = Numbers(42);
    let centers: Vec<Vec<f32>> = (0..30).map(|_| numbers.vector(RECALL_DIMENSIONS)).collect();
    let mut vectors = Vec::new();
    for document in 0..30_u128 {
        let mut rows = Vec::new();
        for ordinal in 0..100 {
            let vector = numbers.near(&centers[ordinal as usize % centers.len()], 0.5);
            vectors.push((id(document, ordinal), vector.clone()));
            rows.push(vector);
        }
        put(index, document, &rows).await;
    }

    let mut shared = 0;
    for center in &centers {
        let vector = numbers.near(center, 0.5);
        let exact = exact_best(&vectors, &vector, LIMIT);
        let nearest = Query { limit: LIMIT, ..query(by_meaning(&vector)) };
        let found = candidates(index, nearest).await.cosines;
        shared += found.iter().filter(|hit| exact.contains(&hit.chunk)).count();
    }
    shared as f32 / (centers.len() * LIMIT) as f32
}

/// A deterministic generator of numbers (Knuth's MMIX multiplier and increment).
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
