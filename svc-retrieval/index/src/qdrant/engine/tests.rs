//! The contract suites on a Qdrant that runs, and what only several writers can show. Every index has a collection of
//! its own, which is removed with it.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use cairn_chassis::clock::{Clock as _, ManualClock, SystemClock, Timestamp};
use cairn_embed::EmbedderIdentity;
use tokio::runtime::Runtime;
use uuid::Uuid;

use super::client::Client;
use super::{Config, Error, Index, QdrantFactory};
use crate::EngineFactory;
use crate::contract::{self, WORKSPACE, document, found, id};
use crate::vectors::{self, VectorIndex, VectorQuery};
use crate::{Batch, Counts, Cursor, Engine, IndexedDocument, LexicalIndex, LexicalQuery, ParsedQuery};

const URL: &str = "CAIRN_TEST_QDRANT_URL";
const API_KEY: &str = "CAIRN_TEST_QDRANT_API_KEY";
const REQUIRED: &str = "CAIRN_REQUIRE_ENGINES";
const FEED: &str = "content";

/// An empty index on Qdrant.
struct Fixture {
    index: Index,
    client: Client,
    collection: String,
    dimensions: usize,
    runtime: Runtime,
}

/// Where Qdrant is, with a prefix of its own; none without one, which is said aloud, and is a failure when it is required.
fn config() -> Option<Config> {
    let Ok(url) = std::env::var(URL) else {
        let required = std::env::var(REQUIRED).unwrap_or_default();
        let is_required = required.split(',').any(|name| name.trim() == "qdrant");
        assert!(!is_required, "{REQUIRED} wants qdrant: {URL} is not set");
        eprintln!("skipped: {URL} is not set");
        return None;
    };
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let now = SystemClock.now().as_micros();
    let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let prefix = format!("cairn-test-{now:x}-{process}-{count}");
    Some(Config { url, api_key: std::env::var(API_KEY).ok(), prefix })
}

impl Fixture {
    fn new(dimensions: usize) -> Option<Self> {
        let config = config()?;
        let runtime = runtime();
        let client = Client::new(&config, runtime.handle().clone()).unwrap();
        let collection = config.prefix;
        let index = Index::on(client.clone(), collection.clone(), dimensions);
        Some(Self { index, client, collection, dimensions, runtime })
    }

    /// Another replica on the same collection.
    fn replica(&self) -> Index {
        Index::on(self.client.clone(), self.collection.clone(), self.dimensions)
    }
}

impl Fixture {
    fn remove(&self) -> Result<(), Error> {
        self.runtime.block_on(self.client.api.delete_collection(self.collection.as_str()))?;
        Ok(())
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        // A failed removal must not hide what failed before.
        let _removed = self.remove();
    }
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

fn cursor(position: u64) -> Cursor {
    Cursor { feed: FEED.to_owned(), workspace: WORKSPACE, position }
}

fn applied(index: &Index, document: IndexedDocument, position: u64) -> Result<(), crate::Error> {
    index.apply(Batch { documents: vec![document], deletions: Vec::new(), cursors: vec![cursor(position)] })
}

fn deleted(index: &Index, number: u128, position: u64) {
    let deletions = vec![(WORKSPACE, Uuid::from_u128(number))];
    index.apply(Batch { documents: Vec::new(), deletions, cursors: vec![cursor(position)] }).unwrap();
}

#[test]
fn keeps_the_contract_of_words() {
    for (name, check) in contract::CHECKS {
        let Some(fixture) = Fixture::new(2) else { return };
        println!("{name}");
        check(&fixture.index);
    }
}

#[test]
fn keeps_the_contract_of_engines() {
    for (name, check) in contract::ENGINE_CHECKS {
        let Some(fixture) = Fixture::new(2) else { return };
        println!("{name}");
        check(&fixture.index);
    }
}

#[test]
fn keeps_the_contract_of_vectors() {
    for (name, check) in vectors::contract::CHECKS {
        let Some(fixture) = Fixture::new(2) else { return };
        println!("{name}");
        check(&fixture.index);
    }
}

#[test]
fn finds_what_an_exact_search_finds() {
    let Some(fixture) = Fixture::new(vectors::contract::RECALL_DIMENSIONS) else { return };
    let recall = vectors::contract::recall(&fixture.index);
    assert!(recall >= 0.98, "recall {recall}");
}

#[test]
fn a_second_replica_sees_what_the_first_applied() {
    let Some(fixture) = Fixture::new(2) else { return };
    applied(&fixture.index, document(1, &["alpha", "beta"]), 7).unwrap();
    let replica = fixture.replica();
    assert_eq!(replica.refresh(FEED, WORKSPACE).unwrap(), 7);
    assert_eq!((replica.cursor(FEED, WORKSPACE), replica.cursors()[FEED][&WORKSPACE]), (7, 7));
    assert_eq!(found(&replica, "beta"), [id(1, 1)]);
    applied(&fixture.index, document(2, &["beta"]), 8).unwrap();
    assert_eq!(replica.cursor(FEED, WORKSPACE), 7);
    assert_eq!(replica.refresh(FEED, WORKSPACE).unwrap(), 8);
    assert_eq!(found(&replica, "beta").len(), 2);
}

#[test]
fn a_replica_that_is_behind_undoes_nothing() {
    let Some(fixture) = Fixture::new(2) else { return };
    let (ahead, behind) = (&fixture.index, fixture.replica());
    applied(ahead, document(1, &["first"]), 1).unwrap();
    assert_eq!(behind.refresh(FEED, WORKSPACE).unwrap(), 1);
    applied(ahead, document(1, &["newest"]), 5).unwrap();
    applied(ahead, document(2, &["second", "second too"]), 6).unwrap();
    deleted(ahead, 2, 7);

    applied(&behind, document(1, &["older", "older", "older"]), 2).unwrap();
    applied(&behind, document(2, &["second", "second too"]), 6).unwrap();
    assert_eq!(found(ahead, "older second first"), []);
    assert_eq!(found(ahead, "newest"), [id(1, 0)]);
    assert_eq!(ahead.counts(WORKSPACE).unwrap(), Counts { documents: 1, chunks: 1 });
    assert_eq!((behind.cursor(FEED, WORKSPACE), ahead.refresh(FEED, WORKSPACE).unwrap()), (7, 7));
}

#[test]
fn a_batch_that_is_applied_again_changes_nothing() {
    let Some(fixture) = Fixture::new(2) else { return };
    for _ in 0..2 {
        // A crash before the cursor moved: the next process begins where the cursor stands.
        let replica = fixture.replica();
        applied(&replica, document(1, &["alpha", "beta", "gamma"]), 3).unwrap();
    }
    applied(&fixture.replica(), document(1, &["beta"]), 3).unwrap();
    assert_eq!(found(&fixture.index, "alpha beta gamma"), [id(1, 0)]);
    assert_eq!(fixture.index.counts(WORKSPACE).unwrap(), Counts { documents: 1, chunks: 1 });
}

#[test]
fn vectors_that_come_later_replace_nothing_newer_and_are_found() {
    let Some(fixture) = Fixture::new(2) else { return };
    let index = &fixture.index;
    let mut without = document(1, &["alpha"]);
    without.chunks[0].embedding = vec![0.0, 0.0];
    applied(index, without, 9).unwrap();
    let nearest = || {
        let query = VectorQuery {
            workspace: WORKSPACE,
            vector: &[1.0, 0.0],
            containers: None,
            documents: None,
            limit: 9,
        };
        VectorIndex::search(index, &query).unwrap()
    };
    assert_eq!(nearest().len(), 0);
    let vectors = Cursor { feed: format!("{FEED}/vectors"), ..cursor(4) };
    let documents = vec![document(1, &["alpha"])];
    index.apply(Batch { documents, deletions: Vec::new(), cursors: vec![vectors] }).unwrap();
    assert_eq!(nearest().len(), 1);
    assert_eq!(index.cursor("content/vectors", WORKSPACE), 4);
    assert_eq!(index.embedded(WORKSPACE, Uuid::from_u128(1)).unwrap()[0].text, "alpha");
}

#[test]
fn a_workspace_forgotten_by_another_replica_is_indexed_from_the_beginning() {
    let Some(fixture) = Fixture::new(2) else { return };
    let (first, second) = (&fixture.index, fixture.replica());
    applied(first, document(1, &["alpha"]), 5).unwrap();
    assert_eq!(second.refresh(FEED, WORKSPACE).unwrap(), 5);
    first.forget(WORKSPACE).unwrap();

    let error = applied(&second, document(2, &["beta"]), 6).unwrap_err();
    assert!(matches!(error, crate::Error::Outrun), "{error}");
    assert_eq!(second.cursor(FEED, WORKSPACE), 0);
    applied(&second, document(1, &["alpha"]), 5).unwrap();
    applied(&second, document(2, &["beta"]), 6).unwrap();
    assert_eq!(first.refresh(FEED, WORKSPACE).unwrap(), 6);
    assert_eq!(found(first, "alpha beta").len(), 2);
}

#[test]
fn a_collection_that_was_removed_is_made_again() {
    let Some(fixture) = Fixture::new(2) else { return };
    let index = &fixture.index;
    applied(index, document(1, &["alpha"]), 5).unwrap();
    fixture.remove().unwrap();
    let error = applied(index, document(2, &["beta"]), 6).unwrap_err();
    assert!(matches!(error, crate::Error::Unavailable(_)), "{error}");
    assert_eq!(index.cursor(FEED, WORKSPACE), 0);
    applied(index, document(1, &["alpha"]), 5).unwrap();
    assert_eq!(found(index, "alpha"), [id(1, 0)]);
}

#[test]
fn replicas_that_write_at_once_end_with_the_newest() {
    let Some(fixture) = Fixture::new(2) else { return };
    let texts = |position: u64| vec!["shared"; usize::try_from(position % 4 + 1).unwrap()];
    std::thread::scope(|scope| {
        for offset in 0..2 {
            let replica = fixture.replica();
            scope.spawn(move || {
                for position in (1..=12).filter(|position| position % 3 != offset) {
                    // Where another replica is ahead there is nothing to do.
                    if replica.refresh(FEED, WORKSPACE).unwrap() < position {
                        applied(&replica, document(1, &texts(position)), position).unwrap();
                    }
                }
            });
        }
    });
    let last = fixture.index.refresh(FEED, WORKSPACE).unwrap();
    assert_eq!(last, 12);
    assert_eq!(found(&fixture.index, "shared").len(), texts(12).len());
    let chunks = u64::try_from(texts(12).len()).unwrap();
    assert_eq!(fixture.index.counts(WORKSPACE).unwrap(), Counts { documents: 1, chunks });
}

#[test]
fn equal_scores_at_the_limit_come_in_the_order_of_their_ids() {
    let Some(fixture) = Fixture::new(2) else { return };
    let documents = (1..=60).map(|number| document(number, &["same words"])).collect();
    fixture.index.apply(Batch { documents, ..Batch::default() }).unwrap();
    let words = ParsedQuery::parse("same");
    let query =
        LexicalQuery { workspace: WORKSPACE, words: &words, containers: None, documents: None, limit: 7 };
    let hits = LexicalIndex::search(&fixture.index, &query).unwrap();
    let expected: Vec<_> = (1..=7).map(|number| id(number, 0)).collect();
    assert_eq!(hits.into_iter().map(|hit| hit.chunk).collect::<Vec<_>>(), expected);
}

#[test]
fn no_query_is_rejected() {
    let Some(fixture) = Fixture::new(2) else { return };
    applied(&fixture.index, document(1, &["alpha beta", "to be or not", "beta \"alpha\" -x _ | \u{0}"]), 1)
        .unwrap();
    let many = (0..300).map(|number| format!("word{number}")).collect::<Vec<_>>().join(" ");
    let texts = [
        "\u{0}",
        "_ |",
        "\"_ alpha\" -\"| beta\"",
        "🦀 العربية \u{202e}x",
        "\"a \u{0} b\"",
        &many,
        &"\"".repeat(99),
    ];
    for text in texts {
        let words = ParsedQuery::parse(text);
        let query =
            LexicalQuery { workspace: WORKSPACE, words: &words, containers: None, documents: None, limit: 5 };
        LexicalIndex::search(&fixture.index, &query).unwrap();
        fixture.index.excluded(WORKSPACE, &words, &[id(1, 0)]).unwrap();
    }
    let containers = HashSet::from_iter((0..2_000).map(Uuid::from_u128));
    let words = ParsedQuery::parse("alpha");
    let query = LexicalQuery {
        workspace: WORKSPACE,
        words: &words,
        containers: Some(&containers),
        documents: None,
        limit: 5,
    };
    assert_eq!(LexicalIndex::search(&fixture.index, &query).unwrap(), []);
}

#[test]
fn generations_have_collections_and_one_is_current() {
    let Some(config) = config() else { return };
    let runtime = runtime();
    let client = Client::new(&config, runtime.handle().clone()).unwrap();
    let clock = Arc::new(ManualClock::new(Timestamp::from_seconds(1_000_000)));
    let open =
        || QdrantFactory::open(&config, Arc::<ManualClock>::clone(&clock), runtime.handle().clone()).unwrap();
    let identity = |embedder: &str, dimensions| EmbedderIdentity {
        embedder: embedder.to_owned(),
        dimensions,
        origin: "builtin".to_owned(),
    };
    let (first, second) = (identity("first", 2), identity("second/model", 3));
    let collections = || {
        let all = runtime.block_on(client.api.list_collections()).unwrap().collections;
        all.into_iter().filter(|collection| collection.name.starts_with(&config.prefix)).count()
    };

    let shelf = open();
    assert_eq!(shelf.current().unwrap(), None);
    shelf.make_current(&first).unwrap();
    assert_eq!(open().current().unwrap(), Some(first.clone()));
    shelf.open(&first).unwrap().apply(Batch { cursors: vec![cursor(3)], ..Batch::default() }).unwrap();
    assert_eq!(open().open(&first).unwrap().cursor(FEED, WORKSPACE), 3);

    assert_eq!(shelf.open(&second).unwrap().cursor(FEED, WORKSPACE), 0);
    assert_eq!(open().current().unwrap(), Some(first));
    shelf.make_current(&second).unwrap();
    assert_eq!(open().current().unwrap(), Some(second.clone()));
    shelf.keep_only(&second).unwrap();
    assert_eq!(collections(), 2, "others may still use it");
    clock.advance(Duration::from_secs(60 * 60));
    shelf.keep_only(&second).unwrap();
    assert_eq!((collections(), open().current().unwrap()), (1, Some(second.clone())));
    runtime
        .block_on(client.api.delete_collection(super::collection::name(&config.prefix, &second.slug())))
        .unwrap();
}

#[test]
fn without_qdrant_every_call_says_so_and_none_panics() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let config = Config {
        url: format!("http://127.0.0.1:{port}"),
        api_key: Some("secret".to_owned()),
        prefix: "x".to_owned(),
    };
    let runtime = runtime();
    let index = Index::on(Client::new(&config, runtime.handle().clone()).unwrap(), "x".to_owned(), 2);
    assert_eq!((index.cursor(FEED, WORKSPACE), index.cursors().len()), (0, 0));
    let words = ParsedQuery::parse("alpha");
    let query =
        LexicalQuery { workspace: WORKSPACE, words: &words, containers: None, documents: None, limit: 5 };
    let errors = [
        LexicalIndex::search(&index, &query).map(|_| ()).unwrap_err(),
        applied(&index, document(1, &["alpha"]), 1).unwrap_err(),
        index.forget(WORKSPACE).unwrap_err(),
        index.counts(WORKSPACE).map(|_| ()).unwrap_err(),
        index.refresh(FEED, WORKSPACE).map(|_| ()).unwrap_err(),
    ];
    for error in errors {
        assert!(matches!(&error, crate::Error::Unavailable(_)), "{error}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
    assert!(index.answers());
    index.maintain().unwrap();
    assert!(!index.answers());
    // Also where the caller must not block: slow, and no panic.
    let other =
        runtime.block_on(async { tokio::task::spawn_blocking(move || index.counts(WORKSPACE)).await });
    assert!(other.unwrap().is_err());
}
