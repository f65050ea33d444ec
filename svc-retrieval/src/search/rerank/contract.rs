//! The contract suite of [`Reranker`]: of several texts, one plainly answers the query.

use super::Reranker;

const QUERY: &str = "how long do honey bees live";
const ANSWER: &str = "Honey bees live for about six weeks in summer; in winter honey bees live for months.";
const TEXTS: [&str; 3] = ["The stock exchange closed early.", ANSWER, "Concrete sets within a day."];

/// All checks on one reranker.
pub(super) async fn check(reranker: &dyn Reranker) {
    let numbers = reranker.rerank(QUERY, &TEXTS).await.unwrap();
    assert_eq!(numbers.len(), TEXTS.len());
    assert!(numbers.iter().all(|number| (0.0..=1.0).contains(number)), "{numbers:?}");
    assert!(numbers[1] > numbers[0] && numbers[1] > numbers[2], "the answer is best: {numbers:?}");

    let turned: Vec<&str> = TEXTS.iter().rev().copied().collect();
    let mut again = reranker.rerank(QUERY, &turned).await.unwrap();
    again.reverse();
    for (one, other) in numbers.iter().zip(&again) {
        assert!(
            (one - other).abs() < 1e-4,
            "the order of the texts makes no difference: {numbers:?}, {again:?}"
        );
    }
    assert_eq!(reranker.rerank(QUERY, &[]).await.unwrap(), Vec::<f32>::new());
    let odd = ["", "\u{0}\u{7f}", "نص من اليمين", "🦡🦡"];
    assert_eq!(reranker.rerank("\"odd\" -query \\ 🦡", &odd).await.unwrap().len(), odd.len());
}
