//! Search by the names of containers.

use std::collections::HashSet;
use std::sync::Arc;

use uuid::Uuid;

use super::{add, candidates, document, id, query};
use crate::words::{Container, ContainerNames};
use crate::{ChunkId, Engine, IndexedDocument, ListQuery, ParsedQuery, Query};

/// The hits of a search that also matches the names of containers, ordered by id.
async fn found_by_names(
    index: &dyn Engine,
    text: &str,
    names: &Arc<ContainerNames>,
    searched: Option<HashSet<Uuid>>,
) -> Vec<ChunkId> {
    let parsed =
        ParsedQuery::parse(text).with_container_names(Arc::clone(names), searched.clone().map(Arc::new));
    let words = ListQuery { words: Some(Arc::new(parsed)), ..ListQuery::default() };
    let query = Query { containers: searched, ..query(words) };
    let mut found: Vec<ChunkId> = candidates(index, query).await.words.iter().map(|hit| hit.chunk).collect();
    found.sort_unstable();
    found
}

pub(super) async fn finds_by_the_names_of_containers(index: &dyn Engine) {
    let [top, inner, other] = [11, 12, 13].map(Uuid::from_u128);
    let within = |container, number, text: &str| IndexedDocument {
        container: Some(container),
        ..document(number, &[text])
    };
    let documents = vec![
        within(top, 1, "one heron"),
        within(inner, 2, "two herons"),
        within(other, 3, "three finance herons"),
    ];
    add(index, documents).await;
    let container =
        |id, parent, name: &str| Container { id, parent, name: name.to_owned(), is_holder: false };
    let names = |top_is: &str| {
        let all = vec![
            container(top, None, top_is),
            container(inner, Some(top), "inner"),
            container(other, None, "other"),
        ];
        Arc::new(ContainerNames::new(all))
    };
    let found = async |text: &str, names: &Arc<ContainerNames>, searched: Option<HashSet<Uuid>>| {
        found_by_names(index, text, names, searched).await
    };
    let before = names("Finance policies");
    assert_eq!(found("finance", &before, None).await, [id(1, 0), id(2, 0), id(3, 0)]);
    assert_eq!(found("\"finance policies\" heron", &before, None).await, [id(1, 0), id(2, 0)]);
    assert_eq!(found("heron -policies", &before, None).await, [id(3, 0)]);
    assert_eq!(found("policy", &before, Some(HashSet::from([inner, other]))).await, [id(2, 0)]);
    // A rename takes effect without a write to the index.
    let after = names("Treasury");
    assert_eq!(found("treasury", &after, None).await, [id(1, 0), id(2, 0)]);
    assert_eq!(found("policies", &after, None).await, []);
    // A match in the chunk itself has more weight.
    let parsed = ParsedQuery::parse("finance").with_container_names(before, None);
    let words = ListQuery { words: Some(Arc::new(parsed)), ..ListQuery::default() };
    assert_eq!(candidates(index, query(words)).await.words[0].chunk, id(3, 0));
}

pub(super) async fn finds_by_the_names_of_holders(index: &dyn Engine) {
    let [folder, other, holder] = [11, 12, 13].map(Uuid::from_u128);
    let held = |container, holder, number| IndexedDocument {
        container: Some(container),
        holder,
        ..document(number, &["a heron"])
    };
    add(index, vec![held(folder, Some(holder), 1), held(folder, None, 2), held(other, None, 3)]).await;
    let container =
        |id, parent, name: &str, is_holder| Container { id, parent, name: name.to_owned(), is_holder };
    let names = |holder_is: &str| {
        let all = vec![
            container(folder, None, "Fieldwork", false),
            container(other, None, "other", false),
            container(holder, Some(folder), holder_is, true),
        ];
        Arc::new(ContainerNames::new(all))
    };
    let found = async |text: &str, names: &Arc<ContainerNames>, searched: Option<HashSet<Uuid>>| {
        found_by_names(index, text, names, searched).await
    };
    let before = names("Sightings");
    assert_eq!(found("sighting", &before, None).await, [id(1, 0)]);
    assert_eq!(found("fieldwork", &before, None).await, [id(1, 0), id(2, 0)]);
    // The documents of a holder are filtered by its parent container.
    assert_eq!(found("sighting", &before, Some(HashSet::from([folder]))).await, [id(1, 0)]);
    assert_eq!(found("sighting", &before, Some(HashSet::from([other]))).await, []);
    let after = names("Ringing");
    assert_eq!(found("ringing", &after, None).await, [id(1, 0)]);
    assert_eq!(found("sighting", &after, None).await, []);
}
