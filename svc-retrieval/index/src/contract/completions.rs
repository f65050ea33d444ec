//! The last word of a search may be a prefix, if no searched chunk contains it as a whole word.

use std::collections::HashSet;
use std::sync::Arc;

use uuid::Uuid;

use super::{
    ChunkId, Engine, IndexedDocument, OTHER_WORKSPACE, add, by_words, document, found, found_within, id,
    query,
};

fn set<const N: usize>(chunks: [ChunkId; N]) -> HashSet<ChunkId> {
    HashSet::from(chunks)
}

async fn all_found(index: &dyn Engine, text: &str) -> HashSet<ChunkId> {
    HashSet::from_iter(found(index, text).await)
}

pub(super) async fn completes_the_last_word(index: &dyn Engine) {
    add(index, vec![document(1, &["kubernetes deployment", "the university library", "deploy it"])]).await;
    assert_eq!(found(index, "kube").await, [id(1, 0)]);
    assert_eq!(found(index, "KUBE").await, [id(1, 0)]);
    assert_eq!(found(index, "universi").await, [id(1, 1)]);
    assert_eq!(all_found(index, "library kuber").await, set([id(1, 0), id(1, 1)]));
    // Neither an earlier word, nor a whole word, nor a word of two letters, nor an exclusion is completed.
    assert_eq!(found(index, "kuber library").await, [id(1, 1)]);
    assert_eq!(all_found(index, "dep").await, set([id(1, 0), id(1, 2)]));
    add(index, vec![document(2, &["dep is short"])]).await;
    assert_eq!(found(index, "dep").await, [id(2, 0)]);
    assert_eq!(found(index, "ku").await, []);
    assert_eq!(all_found(index, "deployment -kube").await, set([id(1, 0), id(1, 2)]));
    assert_eq!(found(index, "xyz").await, []);
    // Phrases and exclusions still apply.
    assert_eq!(found(index, "\"university library\" kube").await, [id(1, 1)]);
    assert_eq!(found(index, "kube -deployment").await, []);
}

pub(super) async fn asks_only_what_is_searched_whether_a_word_is_whole(index: &dyn Engine) {
    let foreign = IndexedDocument { workspace: OTHER_WORKSPACE, ..document(1, &["kube"]) };
    let [visible, hidden] = [11, 12].map(Uuid::from_u128);
    let within =
        |container, number, text| IndexedDocument { container: Some(container), ..document(number, &[text]) };
    add(index, vec![foreign, within(visible, 2, "kubernetes")]).await;
    assert_eq!(found(index, "kube").await, [id(2, 0)]);
    add(index, vec![within(hidden, 3, "kube")]).await;
    assert_eq!(found(index, "kube").await, [id(3, 0)]);
    assert_eq!(found_within(index, "kube", Some(&HashSet::from([visible]))).await, [id(2, 0)]);
}

pub(super) async fn completes_by_what_is_searched_alone(index: &dyn Engine) {
    let foreign = IndexedDocument { workspace: OTHER_WORKSPACE, ..document(1, &["universe"]) };
    add(index, vec![foreign, document(2, &["union"])]).await;
    // Only another workspace has a word with the whole prefix, so a shorter prefix is tried, as if that word did not exist.
    assert_eq!(found(index, "unionize").await, [id(2, 0)]);
    assert_eq!(found(index, "univers").await, []);
}

pub(super) async fn completes_what_would_be_found_after_a_change(index: &dyn Engine) {
    add(index, vec![document(1, &["kubernetes"]), document(2, &["kube"])]).await;
    let after = async |number, text: &str| -> HashSet<ChunkId> {
        let documents = Arc::new(vec![document(number, &[text])]);
        let lists = index.candidates_with_drafts(query(by_words("kube")), documents).await.unwrap();
        lists[0].words.iter().map(|hit| hit.chunk).collect()
    };
    assert_eq!(after(3, "nothing").await, set([id(2, 0)]));
    // The only chunk with the whole word is replaced.
    assert_eq!(after(2, "nothing").await, set([id(1, 0)]));
    assert_eq!(after(2, "kubectl").await, set([id(1, 0), id(2, 0)]));
    assert_eq!(after(1, "kube").await, set([id(1, 0), id(2, 0)]));
}
