//! The features of chunks for reranking.

use std::collections::HashSet;
use std::sync::Arc;

use uuid::Uuid;

use super::{OTHER_WORKSPACE, WORKSPACE, add, document, id};
use crate::{Batch, Engine, IndexedDocument, InspectRequest, Inspection, PieceCounts};

/// A document with these texts and pieces as chunks.
fn with_pieces(number: u128, rows: &[(&str, &[u16])]) -> IndexedDocument {
    let texts: Vec<&str> = rows.iter().map(|(text, _)| *text).collect();
    let mut made = document(number, &texts);
    for (chunk, (_, pieces)) in made.chunks.iter_mut().zip(rows) {
        chunk.pieces = pieces.to_vec();
    }
    made
}

fn request(chunks: &[(u128, u32)], question: &str, pieces: Option<&[u16]>) -> InspectRequest {
    InspectRequest {
        workspace: WORKSPACE,
        containers: None,
        chunks: chunks.iter().map(|(document, ordinal)| id(*document, *ordinal)).collect(),
        question: question.to_owned(),
        pieces: pieces.map(<[u16]>::to_vec),
    }
}

async fn inspect(index: &dyn Engine, request: InspectRequest) -> Inspection {
    index.inspect(request).await.unwrap()
}

pub(super) async fn sees_chunks_and_vectors(index: &dyn Engine) {
    let mut first = with_pieces(1, &[("alpha", &[3, 9]), ("beta", &[])]);
    first.title = "Guide".to_owned();
    first.chunks[0].heading_path = vec!["Top".to_owned()];
    first.chunks[0].embedding = vec![3.0, 4.0];
    first.chunks[1].embedding = vec![0.0, 0.0];
    add(index, vec![first, IndexedDocument { workspace: OTHER_WORKSPACE, ..document(2, &["foreign"]) }])
        .await;
    let asked = [(1, 1), (2, 0), (1, 0), (1, 7)];
    let all = inspect(index, request(&asked, "", Some(&[]))).await;
    let texts: Vec<&str> = all.chunks.iter().map(|chunk| chunk.text.as_str()).collect();
    assert_eq!(texts, ["beta", "alpha"]);
    assert_eq!(
        (all.chunks[1].title.as_str(), all.chunks[1].heading_path.as_slice()),
        ("Guide", &["Top".to_owned()][..])
    );
    assert_eq!(all.composed.keys().collect::<Vec<_>>(), [&id(1, 0)]);
    let composed = &all.composed[&id(1, 0)];
    let vector = composed.vector.to_f32();
    assert!((vector[0] - 0.6).abs() < 0.001 && (vector[1] - 0.8).abs() < 0.001, "{vector:?}");
    // An engine may store no pieces; those that it stores are correct.
    assert!(composed.pieces.is_empty() || *composed.pieces == [3, 9], "{composed:?}");
    let texts_only = inspect(index, request(&asked, "", None)).await;
    assert_eq!(
        (texts_only.chunks, texts_only.composed.len(), texts_only.piece_counts),
        (all.chunks, 0, None)
    );
    assert_eq!(inspect(index, request(&[], "", Some(&[1]))).await.chunks, []);
}

pub(super) async fn tells_the_words_of_the_question(index: &dyn Engine) {
    add(index, vec![document(1, &["rotating keys", "keys of pianos"]), document(2, &["keys again"])]).await;
    let asked = inspect(index, request(&[], "how do I rotate the keys of a zebra", None)).await.words;
    let words: Vec<&str> = asked.words.iter().map(|(word, _)| word.word.as_str()).collect();
    assert_eq!(words, ["rotate", "keys", "zebra"]);
    assert_eq!(asked.words[1].0.forms, ["key"]);
    let idfs: Vec<f32> = asked.words.iter().map(|(_, idf)| *idf).collect();
    assert!(idfs.iter().all(|idf| *idf > 0.0), "{idfs:?}");
    // An engine that does not count returns the same idf for all.
    let is_even = idfs.iter().all(|idf| *idf == idfs[0]);
    assert!(is_even || (idfs[0] > idfs[1] && idfs[2] > idfs[0]), "{idfs:?}");
}

pub(super) async fn counts_pieces_of_the_whole_workspace_alone(index: &dyn Engine) {
    let folder = Uuid::from_u128(11);
    let inside =
        IndexedDocument { container: Some(folder), ..with_pieces(1, &[("a", &[1, 2]), ("b", &[2])]) };
    let foreign = IndexedDocument { workspace: OTHER_WORKSPACE, ..with_pieces(3, &[("c", &[1, 2, 3])]) };
    add(index, vec![inside.clone(), with_pieces(2, &[("d", &[2, 3])]), foreign]).await;
    let piece_counts = async || inspect(index, request(&[], "", Some(&[1, 2, 3, 4]))).await.piece_counts;
    let expected = |chunks, counts: [u32; 4]| PieceCounts { chunks, counts: counts.to_vec() };
    let Some(counted) = piece_counts().await else { return };
    assert_eq!(counted, expected(3, [1, 3, 1, 0]));
    // For a caller of some folders, nothing outside of them may influence a score.
    let scoped =
        InspectRequest { containers: Some(HashSet::from([folder])), ..request(&[(1, 0)], "", Some(&[1, 2])) };
    assert_eq!(inspect(index, scoped).await.piece_counts, None);
    // Counts follow writes.
    add(index, vec![with_pieces(1, &[("a", &[4])])]).await;
    assert_eq!(piece_counts().await, Some(expected(2, [0, 1, 1, 1])));
    let deletions = vec![(WORKSPACE, Uuid::from_u128(2))];
    index.apply(Batch { deletions, ..Batch::default() }).await.unwrap();
    assert_eq!(piece_counts().await, Some(expected(1, [0, 0, 0, 1])));
    index.forget(WORKSPACE).await.unwrap();
    assert_eq!(piece_counts().await, Some(expected(0, [0, 0, 0, 0])));
}

pub(super) async fn sees_what_would_be_seen_after_a_change(index: &dyn Engine) {
    let before = vec![
        with_pieces(1, &[("the signing key", &[1, 2]), ("who rotates it", &[2])]),
        with_pieces(2, &[("keys of pianos", &[2, 3]), ("another key", &[5])]),
    ];
    add(index, before).await;
    let mut new =
        with_pieces(2, &[("the pianos are sold", &[3, 4]), ("nobody rotates", &[]), ("a sold key", &[1])]);
    new.chunks[1].embedding = vec![0.0, 2.0];
    let asked =
        || request(&[(2, 2), (1, 0), (2, 1), (2, 9), (1, 1)], "rotate sold keys", Some(&[1, 2, 3, 4, 5]));
    let with_drafts = index.inspect_with_drafts(asked(), Arc::new(vec![new.clone()])).await.unwrap();
    assert_eq!(inspect(index, asked()).await.chunks.len(), 3, "the index is as it was");
    add(index, vec![new]).await;
    let expected = inspect(index, asked()).await;
    assert_eq!(
        (&with_drafts.chunks, &with_drafts.piece_counts, &with_drafts.words),
        (&expected.chunks, &expected.piece_counts, &expected.words)
    );
    let vectors = |inspection: &Inspection| -> Vec<_> {
        let mut all: Vec<_> = inspection.composed.iter().map(|(id, row)| (*id, row.vector.clone())).collect();
        all.sort_by_key(|(id, _)| *id);
        all
    };
    assert_eq!(vectors(&with_drafts), vectors(&expected));
}
