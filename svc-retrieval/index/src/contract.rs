//! The contract suite of [`Engine`]. Each check gets an empty engine of two dimensions.

use std::collections::HashSet;
use std::sync::Arc;

use futures::future::BoxFuture;
use uuid::Uuid;

use crate::words::Language;

use super::{
    Batch, Candidates, ChunkId, Counts, Cursor, Engine, IndexedChunk, IndexedDocument, ListQuery,
    ParsedQuery, Query,
};

mod completions;
mod drafts;
mod inspect;
mod meaning;
mod names;
mod nearness;

/// The name of a check and the check.
pub(crate) type Check = (&'static str, fn(&dyn Engine) -> BoxFuture<'_, ()>);

macro_rules! checks {
    ($($check:path),+ $(,)?) => {
        &[$((stringify!($check), |engine| Box::pin($check(engine)))),+]
    };
}

/// All checks.
pub(crate) const CHECKS: &[Check] = checks![
    finds_words_in_every_part,
    ranks_and_orders,
    stems_and_ignores_case,
    requires_phrases,
    leaves_out_exclusions,
    finds_nothing_without_words,
    finds_stop_words_where_there_is_nothing_else,
    finds_names_in_every_spelling,
    finds_words_of_every_script_and_language,
    replaces_a_document_whole,
    deletes_before_it_adds,
    keeps_workspaces_apart,
    scores_by_what_is_searched_alone,
    finds_by_tags,
    names::finds_by_the_names_of_containers,
    names::finds_by_the_names_of_holders,
    filters_by_container,
    filters_by_document,
    returns_stored_chunks_in_order,
    keeps_cursors,
    forgets_a_workspace,
    completions::completes_the_last_word,
    completions::asks_only_what_is_searched_whether_a_word_is_whole,
    completions::completes_by_what_is_searched_alone,
    completions::completes_what_would_be_found_after_a_change,
    nearness::words_that_stand_together_come_first,
    nearness::words_of_different_fields_are_far_apart,
    nearness::words_would_stand_together_after_a_change,
    meaning::finds_the_nearest_first,
    meaning::scores_are_cosines,
    meaning::zero_vectors_never_match,
    meaning::finds_nothing_that_is_excluded,
    meaning::looks_farther_where_exclusions_take_much,
    meaning::adds_the_cosines_of_what_the_words_found,
    meaning::counts_meaning_for_nothing_where_a_phrase_is_met,
    meaning::answers_each_list,
    meaning::keeps_vectors_of_workspaces_apart,
    meaning::filters_meaning,
    meaning::refuses_other_dimensions,
    meaning::gives_the_vectors_of_documents,
    meaning::gives_what_was_embedded_with_its_vector,
    inspect::sees_chunks_and_vectors,
    inspect::tells_the_words_of_the_question,
    inspect::counts_pieces_of_the_whole_workspace_alone,
    inspect::sees_what_would_be_seen_after_a_change,
    drafts::finds_what_would_be_found_after_a_change,
    drafts::narrows_what_would_be_found,
];

pub(crate) use self::meaning::{RECALL_DIMENSIONS, recall};

pub(crate) const WORKSPACE: Uuid = Uuid::from_u128(1);
const OTHER_WORKSPACE: Uuid = Uuid::from_u128(2);

pub(crate) fn id(document: u128, ordinal: u32) -> ChunkId {
    ChunkId { document: Uuid::from_u128(document), ordinal }
}

/// A document at the root with these texts as chunks.
pub(crate) fn document(number: u128, texts: &[&str]) -> IndexedDocument {
    let chunk = |text: &&str| IndexedChunk {
        text: (*text).to_owned(),
        heading_path: Vec::new(),
        table_header: String::new(),
        start_line: 1,
        end_line: 1,
        embedding: vec![1.0, 0.0],
        pieces: Vec::new(),
    };
    IndexedDocument {
        workspace: WORKSPACE,
        document: Uuid::from_u128(number),
        container: None,
        holder: None,
        kind: "file".to_owned(),
        title: String::new(),
        path: String::new(),
        tags: Vec::new(),
        language: Language::English,
        content_hash: "hash".to_owned(),
        updated_at: 0,
        chunks: texts.iter().map(chunk).collect(),
    }
}

pub(crate) async fn add(index: &dyn Engine, documents: Vec<IndexedDocument>) {
    index.apply(Batch { documents, ..Batch::default() }).await.unwrap();
}

/// A query for one list of at most ten hits in the whole workspace.
pub(crate) fn query(list_query: ListQuery) -> Query {
    Query { workspace: WORKSPACE, containers: None, documents: None, limit: 10, lists: vec![list_query] }
}

pub(crate) fn by_words(text: &str) -> ListQuery {
    ListQuery { words: Some(Arc::new(ParsedQuery::parse(text))), ..ListQuery::default() }
}

/// The candidates of a query for one list.
pub(crate) async fn candidates(index: &dyn Engine, query: Query) -> Candidates {
    let mut lists = index.candidates(query).await.unwrap();
    assert_eq!(lists.len(), 1);
    let list = lists.pop().unwrap();
    for hits in [&list.words, &list.cosines] {
        assert!(hits.is_sorted_by(|a, b| a.score > b.score || (a.score == b.score && a.chunk < b.chunk)));
    }
    list
}

pub(crate) async fn found(index: &dyn Engine, text: &str) -> Vec<ChunkId> {
    found_within(index, text, None).await
}

async fn found_within(index: &dyn Engine, text: &str, containers: Option<&HashSet<Uuid>>) -> Vec<ChunkId> {
    let query = Query { containers: containers.cloned(), ..query(by_words(text)) };
    candidates(index, query).await.words.into_iter().map(|hit| hit.chunk).collect()
}

async fn finds_words_in_every_part(index: &dyn Engine) {
    let mut first = document(1, &["the body speaks of apples"]);
    first.title = "orchard guide".to_owned();
    first.chunks[0].heading_path = vec!["Growing".to_owned(), "Pruning".to_owned()];
    add(index, vec![first, document(2, &["something else"])]).await;
    for word in ["apples", "orchard", "growing", "pruning", "nothing apples"] {
        assert_eq!(found(index, word).await, [id(1, 0)], "{word}");
    }
    assert_eq!(found(index, "pears").await, []);
}

async fn ranks_and_orders(index: &dyn Engine) {
    let filler = document(9, &["unrelated text of the same length"]);
    add(index, vec![document(1, &["cache", "cache eviction"]), document(2, &["cache"]), filler]).await;
    assert_eq!(found(index, "eviction cache").await, [id(1, 1), id(1, 0), id(2, 0)]);
    let limited = |limit| candidates(index, Query { limit, ..query(by_words("cache")) });
    assert_eq!(limited(2).await.words.len(), 2);
    assert!(limited(0).await.words.is_empty());
}

async fn stems_and_ignores_case(index: &dyn Engine) {
    add(index, vec![document(1, &["Deployments are being CONFIGURED"])]).await;
    for word in ["deployment", "Configure", "configuring"] {
        assert_eq!(found(index, word).await, [id(1, 0)], "{word}");
    }
}

async fn requires_phrases(index: &dyn Engine) {
    let mut titled = document(3, &["about nothing"]);
    titled.title = "rate limit".to_owned();
    add(index, vec![document(1, &["the rate limit of reads"]), document(2, &["limit the rate"]), titled])
        .await;
    assert_eq!(HashSet::from_iter(found(index, "\"rate limit\"").await), HashSet::from([id(1, 0), id(3, 0)]));
    assert_eq!(found(index, "reads \"rate limit\"").await.first(), Some(&id(1, 0)));
    assert_eq!(found(index, "reads \"limit rate\"").await, []);
    assert_eq!(found(index, "\"limit of reads\"").await, [id(1, 0)]);
    assert_eq!(found(index, "\"limit reads\"").await, []);
}

async fn leaves_out_exclusions(index: &dyn Engine) {
    add(index, vec![document(1, &["red apple", "green apple"]), document(2, &["apple pie with cream"])])
        .await;
    assert_eq!(found(index, "apple -green -\"pie with cream\"").await, [id(1, 0)]);
    assert_eq!(found(index, "apple -\"pie cream\"").await.len(), 3);
    assert_eq!(found(index, "\"red apple\" -red").await, []);
    assert_eq!(found(index, "apple -the").await.len(), 3);
}

async fn finds_nothing_without_words(index: &dyn Engine) {
    add(index, vec![document(1, &["some text, not the other"])]).await;
    for text in ["", "-other", "\"\"", "\"to be\"", "- * (", "-\""] {
        assert_eq!(found(index, text).await, [], "{text:?}");
    }
}

async fn finds_stop_words_where_there_is_nothing_else(index: &dyn Engine) {
    add(index, vec![document(1, &["to be or not to be"]), document(2, &["be quick, or not"])]).await;
    assert_eq!(found(index, "\"to be or not to be\"").await, [id(1, 0)]);
    assert_eq!(HashSet::from_iter(found(index, "to be").await), HashSet::from([id(1, 0), id(2, 0)]));
    assert_eq!(found(index, "what is quick").await, [id(2, 0)]);
    assert_eq!(found(index, "be -to").await, [id(2, 0)]);
}

async fn finds_names_in_every_spelling(index: &dyn Engine) {
    let texts =
        ["call getUserName now", "call get_user_name now", "the user has a name", "tokio 1.2.3 and C++"];
    add(index, vec![document(1, &texts)]).await;
    for name in ["getUserName", "get_user_name", "get-user-name", "getusername", "GetUserName()"] {
        assert_eq!(
            HashSet::from_iter(found(index, name).await.into_iter().take(2)),
            HashSet::from([id(1, 0), id(1, 1)]),
            "{name}"
        );
    }
    assert_eq!(found(index, "user name").await.len(), 3);
    assert_eq!(found(index, "\"user name\"").await.len(), 2);
    assert_eq!(found(index, "\"getUserName now\"").await.len(), 2);
    assert_eq!(found(index, "user -getUserName").await, [id(1, 2)]);
    for text in ["1.2.3", "v1.2.3", "\"1.2.3\"", "C++", "\"1.2.3 and c++\""] {
        assert_eq!(found(index, text).await, [id(1, 3)], "{text}");
    }
    assert_eq!(found(index, "123").await, []);
    assert_eq!(found(index, "\"c\"").await, []);
}

async fn finds_words_of_every_script_and_language(index: &dyn Engine) {
    let german = |number, text| {
        let mut german = document(number, &[text]);
        german.language = Language::German;
        german
    };
    add(
        index,
        vec![
            document(1, &["検索拡張生成の仕組み", "การค้นหาเอกสาร", "a résumé of Müller's work"]),
            german(2, "die Häuser der Städte"),
            german(3, "Straßenbahnen fahren täglich"),
        ],
    )
    .await;
    for (text, chunk) in [
        ("検索", id(1, 0)),
        ("拡張生成", id(1, 0)),
        ("\"仕組み\"", id(1, 0)),
        ("組", id(1, 0)),
        ("ค้นหา", id(1, 1)),
        ("resume", id(1, 2)),
        ("RÉSUMÉ", id(1, 2)),
        ("muller", id(1, 2)),
        ("Haus", id(2, 0)),
        ("häuser", id(2, 0)),
        ("Stadt", id(2, 0)),
        ("strassenbahn", id(3, 0)),
        ("\"fahren täglich\"", id(3, 0)),
    ] {
        assert_eq!(found(index, text).await, [chunk], "{text}");
    }
    assert_eq!(found(index, "fahren Häuser -Haus").await, [id(3, 0)]);
}

async fn replaces_a_document_whole(index: &dyn Engine) {
    add(index, vec![document(1, &["alpha", "beta", "gamma"]), document(2, &["alpha"])]).await;
    add(index, vec![document(1, &["beta"])]).await;
    // Their order depends on whether the replaced version still counts in document frequencies.
    assert_eq!(
        HashSet::from_iter(found(index, "alpha beta gamma").await),
        HashSet::from([id(1, 0), id(2, 0)])
    );
    assert_eq!(found(index, "alpha").await, [id(2, 0)]);
    assert_eq!(index.counts(WORKSPACE).await.unwrap(), Counts { documents: 2, chunks: 2 });
    add(index, vec![document(1, &[])]).await;
    assert_eq!(index.counts(WORKSPACE).await.unwrap(), Counts { documents: 1, chunks: 1 });
    add(index, vec![document(2, &["old"]), document(2, &["new"])]).await;
    assert_eq!(found(index, "old new").await, [id(2, 0)]);
}

async fn deletes_before_it_adds(index: &dyn Engine) {
    add(index, vec![document(1, &["alpha"]), document(2, &["alpha"])]).await;
    let deletions = [1, 2, 3].map(|number| (WORKSPACE, Uuid::from_u128(number))).to_vec();
    let documents = vec![document(2, &["alpha again"])];
    index.apply(Batch { documents, deletions, cursors: Vec::new() }).await.unwrap();
    assert_eq!(found(index, "alpha").await, [id(2, 0)]);
}

async fn keeps_workspaces_apart(index: &dyn Engine) {
    let mut other = document(2, &["alpha"]);
    other.workspace = OTHER_WORKSPACE;
    add(index, vec![document(1, &["alpha"]), other]).await;
    assert_eq!(found(index, "alpha").await, [id(1, 0)]);
    assert!(index.chunks(WORKSPACE, vec![id(2, 0)]).await.unwrap().is_empty());
    let deletions = vec![(WORKSPACE, Uuid::from_u128(2))];
    index.apply(Batch { deletions, ..Batch::default() }).await.unwrap();
    assert_eq!(index.counts(OTHER_WORKSPACE).await.unwrap(), Counts { documents: 1, chunks: 1 });
    assert_eq!(index.counts(Uuid::from_u128(3)).await.unwrap(), Counts::default());
}

async fn scores_by_what_is_searched_alone(index: &dyn Engine) {
    let scores = async |containers: Option<&HashSet<Uuid>>| -> Vec<f32> {
        let query = Query { containers: containers.cloned(), ..query(by_words("cache eviction")) };
        candidates(index, query).await.words.into_iter().map(|hit| hit.score).collect()
    };
    let [visible, hidden] = [11, 12].map(Uuid::from_u128);
    let scope = HashSet::from([visible]);
    let within = |container, number, text: &str| IndexedDocument {
        container: Some(container),
        ..document(number, &[text])
    };
    add(
        index,
        vec![within(visible, 1, "cache eviction of pages"), within(visible, 2, "nothing of the kind")],
    )
    .await;
    let (before, before_scoped) = (scores(None).await, scores(Some(&scope)).await);
    assert_eq!(before, before_scoped);

    // Neither documents of another workspace, nor its deleted documents,
    let foreign =
        |number, text: &str| IndexedDocument { workspace: OTHER_WORKSPACE, ..document(number, &[text]) };
    add(
        index,
        vec![foreign(3, "eviction"), foreign(4, "cache cache cache and many other words"), foreign(5, "x")],
    )
    .await;
    assert_eq!(scores(None).await, before);
    add(index, vec![foreign(3, "something else"), document(6, &[])]).await;
    assert_eq!((scores(None).await, scores(Some(&scope)).await), (before.clone(), before_scoped.clone()));

    // nor documents of the same workspace that the caller cannot see influence a score.
    add(index, vec![within(hidden, 7, "eviction and eviction again"), document(8, &["cache"])]).await;
    assert_eq!(scores(Some(&scope)).await, before_scoped);
    assert_ne!(scores(None).await, before);
}

async fn finds_by_tags(index: &dyn Engine) {
    let tagged = |number, text: &str, tags: &[&str]| {
        let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
        IndexedDocument { tags, ..document(number, &[text]) }
    };
    add(index, vec![tagged(1, "some words", &["road map", "draft"]), tagged(2, "others", &[])]).await;
    assert_eq!(found(index, "roadmap drafts").await, [id(1, 0)]);
    assert_eq!(found(index, "\"road map\"").await, [id(1, 0)]);
    assert_eq!(found(index, "\"map draft\"").await, []);
    add(index, vec![tagged(1, "some words", &[])]).await;
    assert_eq!(found(index, "draft").await, []);
}

async fn filters_by_container(index: &dyn Engine) {
    let [folder, source, unused] = [11, 12, 13].map(Uuid::from_u128);
    let mut in_folder = document(1, &["alpha"]);
    in_folder.container = Some(folder);
    let mut in_source = document(2, &["alpha"]);
    in_source.container = Some(source);
    add(index, vec![in_folder.clone(), in_source, document(3, &["alpha"])]).await;
    assert_eq!(found_within(index, "alpha", Some(&HashSet::from([folder]))).await, [id(1, 0)]);
    assert_eq!(
        found_within(index, "alpha", Some(&HashSet::from([folder, source, unused]))).await,
        [id(1, 0), id(2, 0)]
    );
    assert_eq!(found_within(index, "alpha", Some(&HashSet::new())).await, []);
    in_folder.container = Some(unused);
    add(index, vec![in_folder]).await;
    assert_eq!(found_within(index, "alpha", Some(&HashSet::from([folder]))).await, []);
}

async fn filters_by_document(index: &dyn Engine) {
    let folder = Uuid::from_u128(11);
    let inside = IndexedDocument { container: Some(folder), ..document(1, &["cache", "cache eviction"]) };
    add(index, vec![inside, document(2, &["cache"]), document(3, &["cache"])]).await;
    let within = async |containers: Option<HashSet<Uuid>>, documents: &[u128]| -> HashSet<ChunkId> {
        let documents = Some(documents.iter().copied().map(Uuid::from_u128).collect());
        let query = Query { containers, documents, ..query(by_words("cache")) };
        candidates(index, query).await.words.iter().map(|hit| hit.chunk).collect()
    };
    assert_eq!(within(None, &[1, 3, 9]).await, HashSet::from([id(1, 0), id(1, 1), id(3, 0)]));
    assert_eq!(within(Some(HashSet::from([folder])), &[1, 3]).await, HashSet::from([id(1, 0), id(1, 1)]));
    assert_eq!(within(None, &[9]).await, HashSet::new());
}

async fn returns_stored_chunks_in_order(index: &dyn Engine) {
    let mut first = document(1, &["one\n\n  two", "three"]);
    first.title = "Guide".to_owned();
    first.container = Some(Uuid::from_u128(11));
    first.updated_at = -5;
    first.chunks[0].heading_path = vec!["Top".to_owned(), "Sub".to_owned()];
    first.chunks[0].start_line = 3;
    first.chunks[0].end_line = 5;
    add(index, vec![first.clone(), document(2, &["other"])]).await;
    let chunks = index.chunks(WORKSPACE, vec![id(2, 0), id(1, 9), id(1, 0), id(1, 1)]).await.unwrap();
    let order: Vec<ChunkId> = chunks.iter().map(|chunk| chunk.id).collect();
    assert_eq!(order, [id(2, 0), id(1, 0), id(1, 1)]);
    let stored = &chunks[1];
    assert_eq!(stored.text, "one\n\n  two");
    assert_eq!(stored.heading_path, first.chunks[0].heading_path);
    assert_eq!((stored.start_line, stored.end_line), (3, 5));
    assert_eq!((&stored.title, &stored.kind), (&first.title, &first.kind));
    assert_eq!((stored.container, &stored.content_hash), (first.container, &first.content_hash));
    assert_eq!(stored.updated_at, -5);
    assert_eq!(chunks[2].heading_path, Vec::<String>::new());
}

async fn keeps_cursors(index: &dyn Engine) {
    assert_eq!(index.cursor("content", WORKSPACE), 0);
    let cursor = |feed: &str, workspace, position| Cursor { feed: feed.to_owned(), workspace, position };
    let cursors = vec![cursor("content", WORKSPACE, 5), cursor("ingest", WORKSPACE, 2)];
    index.apply(Batch { cursors, ..Batch::default() }).await.unwrap();
    let cursors = vec![cursor("content", WORKSPACE, 6), cursor("content", OTHER_WORKSPACE, 1)];
    index.apply(Batch { cursors, ..Batch::default() }).await.unwrap();
    assert_eq!(index.cursor("content", WORKSPACE), 6);
    assert_eq!(index.cursor("ingest", WORKSPACE), 2);
    assert_eq!(index.cursors()["content"].len(), 2);
}

async fn forgets_a_workspace(index: &dyn Engine) {
    add(index, vec![document(1, &["kept zebra"])]).await;
    let foreign = IndexedDocument { workspace: OTHER_WORKSPACE, ..document(2, &["lost zebra"]) };
    let cursor = |workspace| Cursor { feed: "content".to_owned(), workspace, position: 7 };
    let cursors = vec![cursor(OTHER_WORKSPACE), cursor(WORKSPACE)];
    index.apply(Batch { documents: vec![foreign], cursors, ..Batch::default() }).await.unwrap();
    assert_eq!(index.counts(OTHER_WORKSPACE).await.unwrap().chunks, 1);

    index.forget(OTHER_WORKSPACE).await.unwrap();
    assert_eq!(index.counts(OTHER_WORKSPACE).await.unwrap(), Counts::default());
    assert_eq!((index.cursor("content", OTHER_WORKSPACE), index.cursor("content", WORKSPACE)), (0, 7));
    assert_eq!(found(index, "zebra").await, [id(1, 0)]);
}
