//! Searches with drafts in place of indexed documents, such as the preview of an edit.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use uuid::Uuid;

use super::{WORKSPACE, add, by_words, document, id};
use crate::{Candidates, ChunkId, Engine, Hit, IndexedDocument, ListQuery, ParsedQuery, Query};

/// Lists by words, by vector and by both.
fn query(text: &str) -> Query {
    let (words, vector) = (Arc::new(ParsedQuery::parse(text)), Arc::from([0.6, 0.8]));
    let by_meaning =
        ListQuery { words: None, vector: Some(Arc::clone(&vector)), without: vec![Arc::clone(&words)] };
    let by_both = ListQuery { words: Some(words), vector: Some(vector), without: Vec::new() };
    let lists = vec![by_words(text), by_meaning, by_both];
    Query { workspace: WORKSPACE, containers: None, documents: None, limit: 50, lists }
}

/// Whether both have the same chunks with the same scores, up to the half precision of stored vectors.
#[track_caller]
fn check(found: &[Hit], expected: &[Hit], text: &str) {
    let positive = |hits: &[Hit]| -> HashMap<ChunkId, f32> {
        hits.iter().filter(|hit| hit.score > 0.0).map(|hit| (hit.chunk, hit.score)).collect()
    };
    let (found, expected) = (positive(found), positive(expected));
    let is_near = |(chunk, score): (&ChunkId, &f32)| {
        expected.get(chunk).is_some_and(|expected| (expected - score).abs() < 0.002)
    };
    let is_same = found.len() == expected.len() && found.iter().all(is_near);
    assert!(is_same, "{text}: {found:?} is not {expected:?}");
}

async fn with_draft(index: &dyn Engine, query: Query, document: IndexedDocument) -> Vec<Candidates> {
    index.candidates_with_drafts(query, Arc::new(vec![document])).await.unwrap()
}

pub(super) async fn finds_what_would_be_found_after_a_change(index: &dyn Engine) {
    let before = vec![
        document(1, &["The signing key is rotated every month", "Who rotates it is on call"]),
        document(2, &["Keys of the pianos are tuned", "getUserName reads a signing key"]),
        document(3, &["Nothing of the kind"]),
    ];
    let mut new = document(2, &["The pianos are sold", "Nobody reads a key", "A rotated key signs"]);
    new.chunks[1].embedding = vec![0.0, 1.0];
    add(index, before).await;
    let texts = ["signing key", "rotate -piano", "\"signing key\"", "key", "-kind", "", "sold", "zebra"];
    let mut previews = Vec::new();
    for text in texts {
        previews.push(with_draft(index, query(text), new.clone()).await);
    }
    // The index is unchanged.
    assert_eq!(index.chunks(WORKSPACE, vec![id(2, 2)]).await.unwrap(), []);
    add(index, vec![new]).await;
    for (text, preview) in texts.into_iter().zip(previews) {
        let expected = index.candidates(query(text)).await.unwrap();
        assert_eq!(preview.len(), expected.len());
        for (found, expected) in preview.iter().zip(&expected) {
            check(&found.words, &expected.words, text);
            check(&found.cosines, &expected.cosines, text);
        }
    }
}

pub(super) async fn narrows_what_would_be_found(index: &dyn Engine) {
    let (inside, outside) = (Some(Uuid::from_u128(11)), Some(Uuid::from_u128(12)));
    let mut other = document(2, &["signing key of others"]);
    other.container = inside;
    add(index, vec![document(1, &["signing key"]), other]).await;
    let mut new = document(1, &["a key that signs"]);
    new.container = inside;
    let words =
        async |containers: Option<HashSet<Uuid>>, documents: Option<HashSet<Uuid>>, new: &IndexedDocument| {
            let query = Query { containers, documents, ..query("key") };
            let found = with_draft(index, query, new.clone()).await;
            let mut chunks: Vec<ChunkId> = found[0].words.iter().map(|hit| hit.chunk).collect();
            chunks.sort_unstable();
            chunks
        };
    let in_folder = || inside.map(|folder| HashSet::from([folder]));
    assert_eq!(words(in_folder(), None, &new).await, [id(1, 0), id(2, 0)]);
    assert_eq!(words(in_folder(), Some([Uuid::from_u128(2)].into()), &new).await, [id(2, 0)]);
    new.container = outside;
    assert_eq!(words(in_folder(), None, &new).await, [id(2, 0)]);
    // A draft without chunks removes the document.
    new.chunks.clear();
    assert_eq!(words(None, None, &new).await, [id(2, 0)]);
}
