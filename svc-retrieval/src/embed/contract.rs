//! What every embedder must do, checked on each of them by the same tests.

use super::Embedder;

/// A text, one that says nearly the same in other words, and one about something else.
const TRIPLES: [(&str, &str, &str); 4] = [
    (
        "how to restart the database server",
        "restarting a postgres instance",
        "a recipe for apple pie with cinnamon",
    ),
    ("the invoice was paid late", "overdue payment of a bill", "the telescope observes distant galaxies"),
    ("read a file line by line", "iterate over the lines of a text file", "football players on the pitch"),
    ("the doctor treated the patient", "medical care in a hospital", "compile the kernel from source"),
];

/// Panics unless the embedder keeps the contract of [`Embedder::embed`].
pub(crate) async fn check(embedder: &dyn Embedder) {
    assert!(!embedder.name().is_empty());
    assert!(embedder.dimensions() > 0);
    assert!(embedder.embed(&[]).await.unwrap().is_empty());

    let texts: Vec<&str> =
        TRIPLES.iter().flat_map(|triple| [triple.0, triple.1, triple.2]).chain([""]).collect();
    let vectors = embedder.embed(&texts).await.unwrap();
    assert_eq!(vectors.len(), texts.len());
    assert_eq!(vectors, embedder.embed(&texts).await.unwrap(), "not deterministic");

    for (text, vector) in texts.iter().zip(&vectors) {
        assert_eq!(vector.len(), embedder.dimensions(), "{text:?}");
        let norm = cosine(vector, vector).sqrt();
        assert!(norm == 0.0 || (norm - 1.0).abs() < 1e-4, "{text:?} has length {norm}");
        let alone = embedder.embed(&[text]).await.unwrap();
        assert_eq!(alone.first(), Some(vector), "{text:?} differs when embedded alone");
    }
    for (triple, [text, related, unrelated]) in TRIPLES.iter().zip(vectors.as_chunks::<3>().0) {
        let (near, far) = (cosine(text, related), cosine(text, unrelated));
        assert!(near > far, "{triple:?}: related {near}, unrelated {far}");
    }
}

fn cosine(left: &[f32], right: &[f32]) -> f32 {
    left.iter().zip(right).map(|(left, right)| left * right).sum()
}
