//! The proximity bonus: chunks with words of the question near each other rank above chunks with the same words far apart.

use std::sync::Arc;

use super::{Engine, add, by_words, document, found, id, query};

const APART: &str = "rate one two three four five six seven limit";
const TOGETHER: &str = "one two three four five six seven rate limit";

pub(super) async fn words_that_stand_together_come_first(index: &dyn Engine) {
    add(index, vec![document(1, &[APART]), document(2, &[TOGETHER]), document(3, &[APART])]).await;
    assert_eq!(found(index, "rate limit").await, [id(2, 0), id(1, 0), id(3, 0)]);
    assert_eq!(found(index, "limits of rates").await, [id(2, 0), id(1, 0), id(3, 0)]);
    // A single word has no proximity bonus.
    assert_eq!(found(index, "rate").await, [id(1, 0), id(2, 0), id(3, 0)]);
}

pub(super) async fn words_of_different_fields_are_far_apart(index: &dyn Engine) {
    let mut titled = document(1, &["limit one two three four five six seven"]);
    titled.title = "rate".to_owned();
    add(index, vec![titled, document(2, &[TOGETHER])]).await;
    assert_eq!(found(index, "rate limit").await, [id(2, 0), id(1, 0)]);
}

pub(super) async fn words_would_stand_together_after_a_change(index: &dyn Engine) {
    add(index, vec![document(1, &[APART]), document(2, &[APART]), document(3, &[APART])]).await;
    let after = async |number, text: &str| -> Vec<_> {
        let documents = Arc::new(vec![document(number, &[text])]);
        let lists = index.candidates_with_drafts(query(by_words("rate limit")), documents).await.unwrap();
        lists[0].words.iter().map(|hit| hit.chunk).collect()
    };
    assert_eq!(after(2, TOGETHER).await, [id(2, 0), id(1, 0), id(3, 0)]);
    add(index, vec![document(3, &[TOGETHER])]).await;
    assert_eq!(after(2, APART).await, [id(3, 0), id(1, 0), id(2, 0)]);
}
