//! The contract suite of [`Embedder`], which runs against every implementation.

use super::{Embedder, TextKind};

/// A text, one that says nearly the same in other words, and one about something else.
pub(crate) const TRIPLES: [(&str, &str, &str); 4] = [
    (
        "how to restart the database server",
        "restarting a postgres instance",
        "a recipe for apple pie with cinnamon",
    ),
    ("the invoice was paid late", "overdue payment of a bill", "the telescope observes distant galaxies"),
    ("read a file line by line", "iterate over the lines of a text file", "football players on the pitch"),
    ("the doctor treated the patient", "medical care in a hospital", "compile the kernel from source"),
];

/// The tolerance between two vectors of one text: rounding depends on the batch.
const ROUNDING: f32 = 1e-4;

/// Panics unless the embedder keeps the contract of [`Embedder::embed`].
pub(crate) async fn check(embedder: &dyn Embedder) {
    assert!(!embedder.name().is_empty());
    assert!(!embedder.origin().is_empty());
    assert!(embedder.dimensions() > 0);
    for kind in [TextKind::Query, TextKind::Passage] {
        check_kind(embedder, kind).await;
    }
}

async fn check_kind(embedder: &dyn Embedder, kind: TextKind) {
    assert!(embedder.embed(kind, &[]).await.unwrap().is_empty());

    // A long text, so that a batch is padded and cut into windows, and two texts without words.
    let long = "the patient read the invoice of the hospital line by line ".repeat(60);
    let texts: Vec<&str> = TRIPLES
        .iter()
        .flat_map(|triple| [triple.0, triple.1, triple.2])
        .chain(["", " \n\t", long.as_str()])
        .collect();
    let vectors = embedder.embed(kind, &texts).await.unwrap();
    assert_eq!(vectors.len(), texts.len());
    let again = embedder.embed(kind, &texts).await.unwrap();

    for ((text, vector), again) in texts.iter().zip(&vectors).zip(&again) {
        assert_eq!(vector.len(), embedder.dimensions(), "{text:?}");
        let norm = cosine(vector, vector).sqrt();
        let is_zero = vector.iter().all(|value| *value == 0.0);
        assert_eq!(is_zero, text.trim().is_empty(), "{text:?}");
        assert!(is_zero || (norm - 1.0).abs() < ROUNDING, "{text:?} has length {norm}");
        assert_same(vector, again, &format!("{text:?} differs when embedded again"));
        let alone = embedder.embed(kind, &[text]).await.unwrap();
        assert_same(vector, &alone[0], &format!("{text:?} differs when embedded alone"));
    }
    for (triple, [text, related, unrelated]) in TRIPLES.iter().zip(vectors.as_chunks::<3>().0) {
        let (near, far) = (cosine(text, related), cosine(text, unrelated));
        assert!(near > far, "{triple:?}: related {near}, unrelated {far}");
    }
}

#[track_caller]
fn assert_same(left: &[f32], right: &[f32], message: &str) {
    assert_eq!(left.len(), right.len(), "{message}");
    assert!(left.iter().zip(right).all(|(left, right)| (left - right).abs() < ROUNDING), "{message}");
}

pub(crate) fn cosine(left: &[f32], right: &[f32]) -> f32 {
    left.iter().zip(right).map(|(left, right)| left * right).sum()
}
