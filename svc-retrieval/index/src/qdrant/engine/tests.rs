//! The contract suites on a running Qdrant or on the fake, and tests with several writers. Every index has its own collection, which is
//! removed with it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use cairn_chassis::clock::{Clock as _, ManualClock, SystemClock, Timestamp};
use cairn_chassis::entropy::OsEntropy;
use cairn_chassis::ids::IdSource;
use cairn_chassis::testing::certificates::Authority;
use cairn_embed::EmbedderIdentity;
use tokio::net::TcpListener;
use uuid::Uuid;

use super::client::Client;
use super::{Config, Error, Index, QdrantFactory};
use crate::EngineFactory;
use crate::contract::{self, WORKSPACE, by_words, candidates, document, found, id, query};
use crate::qdrant::fake::{FakeQdrant, FakeQdrantOptions};
use crate::{Batch, Counts, Cursor, Engine, IndexedDocument, ListQuery, Query};

const URL: &str = "CAIRN_TEST_QDRANT_URL";
const API_KEY: &str = "CAIRN_TEST_QDRANT_API_KEY";
const REQUIRED: &str = "CAIRN_REQUIRE_ENGINES";
const FEED: &str = "content";

/// An empty index on Qdrant or on the fake.
struct Fixture {
    index: Index,
    client: Client,
    place: Place,
    collection: String,
    dimensions: usize,
}

/// The Qdrant of a test, with a unique prefix.
struct Place {
    config: Config,
    /// Stops with the test.
    fake: Option<FakeQdrant>,
}

impl Place {
    /// The configured Qdrant; without one the fake, which is printed, or fails if Qdrant is required.
    async fn find() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let now = SystemClock.now().as_micros();
        let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let prefix = format!("cairn-test-{now:x}-{process}-{count}");
        if let Ok(url) = std::env::var(URL) {
            let config = Config { url, ca: None, api_key: std::env::var(API_KEY).ok(), prefix };
            return Self { config, fake: None };
        }
        let required = std::env::var(REQUIRED).unwrap_or_default();
        let is_required = required.split(',').any(|name| name.trim() == "qdrant");
        assert!(!is_required, "{REQUIRED} wants qdrant: {URL} is not set");
        eprintln!("on the fake of Qdrant: {URL} is not set");
        let fake = fake(FakeQdrantOptions::default()).await;
        let config = Config { url: format!("http://{}", fake.address()), ca: None, api_key: None, prefix };
        Self { config, fake: Some(fake) }
    }
}

/// A different replica each time.
fn ids() -> IdSource {
    IdSource::new(Arc::new(SystemClock), Arc::new(OsEntropy))
}

async fn fake(options: FakeQdrantOptions) -> FakeQdrant {
    FakeQdrant::start(TcpListener::bind("127.0.0.1:0").await.unwrap(), options).unwrap()
}

impl Fixture {
    async fn new(dimensions: usize) -> Self {
        let place = Place::find().await;
        let client = Client::new(&place.config).unwrap();
        let collection = place.config.prefix.clone();
        let index = Index::on(client.clone(), collection.clone(), dimensions, ids());
        Self { index, client, place, collection, dimensions }
    }

    /// Another replica on the same collection.
    fn replica(&self) -> Index {
        Index::on(self.client.clone(), self.collection.clone(), self.dimensions, ids())
    }

    async fn remove(&self) -> Result<(), Error> {
        self.client.api.delete_collection(self.collection.as_str()).await?;
        Ok(())
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        if self.place.fake.is_some() {
            return;
        }
        // In its own thread, since this one drives the runtime of a test. A failed removal must not hide an earlier failure.
        let (config, collection) = (self.place.config.clone(), self.collection.clone());
        let remove =
            async move { Client::new(&config).unwrap().api.delete_collection(collection).await.is_ok() };
        let removed = std::thread::spawn(move || tokio::runtime::Runtime::new().unwrap().block_on(remove));
        let _removed = removed.join();
    }
}

fn cursor(position: u64) -> Cursor {
    Cursor { feed: FEED.to_owned(), workspace: WORKSPACE, position }
}

async fn applied(index: &Index, document: IndexedDocument, position: u64) -> Result<(), crate::Error> {
    index
        .apply(Batch { documents: vec![document], deletions: Vec::new(), cursors: vec![cursor(position)] })
        .await
}

async fn deleted(index: &Index, number: u128, position: u64) {
    let deletions = vec![(WORKSPACE, Uuid::from_u128(number))];
    index.apply(Batch { documents: Vec::new(), deletions, cursors: vec![cursor(position)] }).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_the_contract() {
    for (name, check) in contract::CHECKS {
        let fixture = Fixture::new(2).await;
        println!("{name}");
        check(&fixture.index).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn finds_what_an_exact_search_finds() {
    let fixture = Fixture::new(contract::RECALL_DIMENSIONS).await;
    let recall = contract::recall(&fixture.index).await;
    assert!(recall >= 0.98, "recall {recall}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_replica_sees_what_the_first_applied() {
    let fixture = Fixture::new(2).await;
    applied(&fixture.index, document(1, &["alpha", "beta"]), 7).await.unwrap();
    let replica = fixture.replica();
    assert_eq!(replica.refresh(FEED, WORKSPACE).await.unwrap(), 7);
    assert_eq!((replica.cursor(FEED, WORKSPACE), replica.cursors()[FEED][&WORKSPACE]), (7, 7));
    assert_eq!(found(&replica, "beta").await, [id(1, 1)]);
    applied(&fixture.index, document(2, &["beta"]), 8).await.unwrap();
    assert_eq!(replica.cursor(FEED, WORKSPACE), 7);
    assert_eq!(replica.refresh(FEED, WORKSPACE).await.unwrap(), 8);
    assert_eq!(found(&replica, "beta").await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_is_behind_undoes_nothing() {
    let fixture = Fixture::new(2).await;
    let (ahead, behind) = (&fixture.index, fixture.replica());
    applied(ahead, document(1, &["first"]), 1).await.unwrap();
    assert_eq!(behind.refresh(FEED, WORKSPACE).await.unwrap(), 1);
    applied(ahead, document(1, &["newest"]), 5).await.unwrap();
    applied(ahead, document(2, &["second", "second too"]), 6).await.unwrap();
    deleted(ahead, 2, 7).await;

    applied(&behind, document(1, &["older", "older", "older"]), 2).await.unwrap();
    applied(&behind, document(2, &["second", "second too"]), 6).await.unwrap();
    assert_eq!(found(ahead, "older second first").await, []);
    assert_eq!(found(ahead, "newest").await, [id(1, 0)]);
    assert_eq!(ahead.counts(WORKSPACE).await.unwrap(), Counts { documents: 1, chunks: 1 });
    assert_eq!((behind.cursor(FEED, WORKSPACE), ahead.refresh(FEED, WORKSPACE).await.unwrap()), (7, 7));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_is_applied_again_changes_nothing() {
    let fixture = Fixture::new(2).await;
    for _ in 0..2 {
        // A crash before the cursor was advanced: the next process starts from the cursor.
        let replica = fixture.replica();
        applied(&replica, document(1, &["alpha", "beta", "gamma"]), 3).await.unwrap();
    }
    applied(&fixture.replica(), document(1, &["beta"]), 3).await.unwrap();
    assert_eq!(found(&fixture.index, "alpha beta gamma").await, [id(1, 0)]);
    assert_eq!(fixture.index.counts(WORKSPACE).await.unwrap(), Counts { documents: 1, chunks: 1 });
}

#[tokio::test(flavor = "multi_thread")]
async fn vectors_that_come_later_replace_nothing_newer_and_are_found() {
    let fixture = Fixture::new(2).await;
    let index = &fixture.index;
    let mut without = document(1, &["alpha"]);
    without.chunks[0].embedding = vec![0.0, 0.0];
    applied(index, without, 9).await.unwrap();
    let nearest = async || {
        let near = ListQuery { vector: Some([1.0, 0.0].into()), ..ListQuery::default() };
        candidates(index, query(near)).await.cosines
    };
    assert_eq!(nearest().await.len(), 0);
    let vectors = Cursor { feed: format!("{FEED}/vectors"), ..cursor(4) };
    let documents = vec![document(1, &["alpha"])];
    index.apply(Batch { documents, deletions: Vec::new(), cursors: vec![vectors] }).await.unwrap();
    assert_eq!(nearest().await.len(), 1);
    assert_eq!(index.cursor("content/vectors", WORKSPACE), 4);
    assert_eq!(
        index.embedded(WORKSPACE, vec![Uuid::from_u128(1)]).await.unwrap()[&Uuid::from_u128(1)][0].text,
        "alpha"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workspace_forgotten_by_another_replica_is_indexed_from_the_beginning() {
    let fixture = Fixture::new(2).await;
    let (first, second) = (&fixture.index, fixture.replica());
    applied(first, document(1, &["alpha"]), 5).await.unwrap();
    assert_eq!(second.refresh(FEED, WORKSPACE).await.unwrap(), 5);
    first.forget(WORKSPACE).await.unwrap();

    let error = applied(&second, document(2, &["beta"]), 6).await.unwrap_err();
    assert!(matches!(error, crate::Error::CursorsBehind), "{error}");
    assert_eq!(second.cursor(FEED, WORKSPACE), 0);
    applied(&second, document(1, &["alpha"]), 5).await.unwrap();
    applied(&second, document(2, &["beta"]), 6).await.unwrap();
    assert_eq!(first.refresh(FEED, WORKSPACE).await.unwrap(), 6);
    assert_eq!(found(first, "alpha beta").await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collection_that_was_removed_is_made_again() {
    let fixture = Fixture::new(2).await;
    let index = &fixture.index;
    applied(index, document(1, &["alpha"]), 5).await.unwrap();
    fixture.remove().await.unwrap();
    let error = applied(index, document(2, &["beta"]), 6).await.unwrap_err();
    assert!(matches!(error, crate::Error::Unavailable(_)), "{error}");
    assert_eq!(index.cursor(FEED, WORKSPACE), 0);
    applied(index, document(1, &["alpha"]), 5).await.unwrap();
    assert_eq!(found(index, "alpha").await, [id(1, 0)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_read_before_a_collection_was_lost_is_not_written_into_the_next_one() {
    let fixture = Fixture::new(2).await;
    let index = &fixture.index;
    applied(index, document(1, &["alpha"]), 5).await.unwrap();
    // A caller reads its cursor, and the feed from there.
    assert_eq!(index.refresh(FEED, WORKSPACE).await.unwrap(), 5);
    fixture.remove().await.unwrap();
    // Meanwhile other callers notice the loss and recreate the collection.
    assert_eq!(index.storage_losses(), 0);
    assert!(index.counts(WORKSPACE).await.is_err());
    assert_eq!(index.storage_losses(), 1);
    assert_eq!(index.counts(WORKSPACE).await.unwrap(), Counts { documents: 0, chunks: 0 });
    let error = applied(index, document(2, &["beta"]), 6).await.unwrap_err();
    assert!(matches!(error, crate::Error::CursorsBehind), "{error}");
    assert_eq!(index.cursor(FEED, WORKSPACE), 0);
    applied(index, document(1, &["alpha"]), 5).await.unwrap();
    applied(index, document(2, &["beta"]), 6).await.unwrap();
    assert_eq!(index.refresh(FEED, WORKSPACE).await.unwrap(), 6);
    assert_eq!(found(index, "alpha beta").await.len(), 2);
}

/// Two replicas with a cached cursor of a collection, which is then lost; the first replica notices and recreates it.
async fn lost_behind_the_second() -> (Fixture, Index) {
    let fixture = Fixture::new(2).await;
    let second = fixture.replica();
    applied(&fixture.index, document(1, &["alpha"]), 5).await.unwrap();
    assert_eq!(found(&second, "alpha").await, [id(1, 0)]);
    assert_eq!(second.refresh(FEED, WORKSPACE).await.unwrap(), 5);
    fixture.remove().await.unwrap();
    assert!(fixture.index.counts(WORKSPACE).await.is_err());
    assert_eq!(fixture.index.counts(WORKSPACE).await.unwrap(), Counts::default());
    assert_eq!((second.storage_losses(), second.cursor(FEED, WORKSPACE)), (0, 5));
    (fixture, second)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_slept_through_a_loss_answers_nothing_from_the_next_collection() {
    let (fixture, second) = lost_behind_the_second().await;
    let error = second.candidates(query(by_words("alpha"))).await.map(|_| ()).unwrap_err();
    assert!(matches!(error, crate::Error::Unavailable(_)), "{error}");
    // From here on it reports the lag of the index and refills it.
    assert_eq!((second.storage_losses(), second.cursor(FEED, WORKSPACE)), (1, 0));
    assert_eq!(second.refresh(FEED, WORKSPACE).await.unwrap(), 0);
    applied(&second, document(1, &["alpha"]), 5).await.unwrap();
    for index in [&fixture.index, &second] {
        assert_eq!(found(index, "alpha").await, [id(1, 0)]);
        assert_eq!((index.refresh(FEED, WORKSPACE).await.unwrap(), index.storage_losses()), (5, 1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_slept_through_a_loss_writes_nothing_as_if_all_before_were_there() {
    let (fixture, second) = lost_behind_the_second().await;
    let error = applied(&second, document(2, &["beta"]), 6).await.unwrap_err();
    assert!(matches!(error, crate::Error::Unavailable(_)), "{error}");
    assert_eq!((second.storage_losses(), second.refresh(FEED, WORKSPACE).await.unwrap()), (1, 0));
    applied(&second, document(1, &["alpha"]), 5).await.unwrap();
    applied(&second, document(2, &["beta"]), 6).await.unwrap();
    assert_eq!(found(&fixture.index, "alpha beta").await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_cursor_that_arrives_in_the_next_collection_is_not_believed() {
    let fixture = Fixture::new(2).await;
    let (first, second) = (&fixture.index, fixture.replica());
    for index in [first, &second] {
        assert_eq!(index.refresh(FEED, WORKSPACE).await.unwrap(), 0);
    }
    fixture.remove().await.unwrap();
    assert!(first.counts(WORKSPACE).await.is_err());
    assert_eq!(first.counts(WORKSPACE).await.unwrap(), Counts::default());
    // Only the cursor: the documents before it were written into the lost collection.
    let batch = Batch { cursors: vec![cursor(6)], ..Batch::default() };
    let error = second.apply(batch).await.unwrap_err();
    assert!(matches!(error, crate::Error::Unavailable(_)), "{error}");

    let started_later = fixture.replica();
    started_later.prepare().await.unwrap();
    assert_eq!(started_later.cursor(FEED, WORKSPACE), 0);
    assert_eq!(first.refresh(FEED, WORKSPACE).await.unwrap(), 0);
    assert_eq!((second.storage_losses(), second.refresh(FEED, WORKSPACE).await.unwrap()), (1, 0));
    applied(&second, document(1, &["alpha"]), 5).await.unwrap();
    assert_eq!(first.refresh(FEED, WORKSPACE).await.unwrap(), 5);
    assert_eq!(found(first, "alpha").await, [id(1, 0)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_later_cursor_that_arrives_in_the_next_collection_moves_nothing() {
    let (fixture, second) = lost_behind_the_second().await;
    applied(&fixture.index, document(1, &["alpha"]), 5).await.unwrap();
    let batch = Batch { cursors: vec![cursor(6)], ..Batch::default() };
    let error = second.apply(batch).await.unwrap_err();
    assert!(matches!(error, crate::Error::Unavailable(_)), "{error}");
    assert_eq!(fixture.index.refresh(FEED, WORKSPACE).await.unwrap(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_slept_through_a_loss_finds_out_though_nobody_asks() {
    let (_fixture, second) = lost_behind_the_second().await;
    second.maintain().await.unwrap();
    assert_eq!((second.storage_losses(), second.cursor(FEED, WORKSPACE)), (1, 0));
    assert!(second.answers());
    // The loss is counted only once.
    second.maintain().await.unwrap();
    assert_eq!(second.storage_losses(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collection_that_is_gone_is_made_again_though_nobody_asks() {
    let fixture = Fixture::new(2).await;
    applied(&fixture.index, document(1, &["alpha"]), 5).await.unwrap();
    fixture.remove().await.unwrap();
    fixture.index.maintain().await.unwrap();
    assert!(fixture.index.answers());
    assert_eq!((fixture.index.storage_losses(), fixture.index.cursor(FEED, WORKSPACE)), (1, 0));
    assert_eq!(fixture.index.counts(WORKSPACE).await.unwrap(), Counts::default());
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_that_write_at_once_end_with_the_newest() {
    let fixture = Fixture::new(2).await;
    let texts = |position: u64| vec!["shared"; usize::try_from(position % 4 + 1).unwrap()];
    let write = async |replica: Index, offset: u64| {
        for position in (1..=12).filter(|position| position % 3 != offset) {
            // If another replica is ahead, there is nothing to do.
            if replica.refresh(FEED, WORKSPACE).await.unwrap() < position {
                applied(&replica, document(1, &texts(position)), position).await.unwrap();
            }
        }
    };
    tokio::join!(write(fixture.replica(), 0), write(fixture.replica(), 1));
    let last = fixture.index.refresh(FEED, WORKSPACE).await.unwrap();
    assert_eq!(last, 12);
    assert_eq!(found(&fixture.index, "shared").await.len(), texts(12).len());
    let chunks = u64::try_from(texts(12).len()).unwrap();
    assert_eq!(fixture.index.counts(WORKSPACE).await.unwrap(), Counts { documents: 1, chunks });
}

#[tokio::test(flavor = "multi_thread")]
async fn equal_scores_at_the_limit_come_in_the_order_of_their_ids() {
    let fixture = Fixture::new(2).await;
    let documents = (1..=60).map(|number| document(number, &["same words"])).collect();
    fixture.index.apply(Batch { documents, ..Batch::default() }).await.unwrap();
    let both = ListQuery { vector: Some([1.0, 0.0].into()), ..by_words("same") };
    let found = candidates(&fixture.index, Query { limit: 7, ..query(both) }).await;
    let expected: Vec<_> = (1..=7).map(|number| id(number, 0)).collect();
    for hits in [&found.words, &found.cosines] {
        assert_eq!(hits.iter().map(|hit| hit.chunk).collect::<Vec<_>>(), expected);
    }
    // Lexical hits beyond the first request have their cosine, too.
    assert!(found.cosines.iter().all(|hit| hit.score > 0.99), "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_query_is_rejected() {
    let fixture = Fixture::new(2).await;
    applied(&fixture.index, document(1, &["alpha beta", "to be or not", "beta \"alpha\" -x _ | \u{0}"]), 1)
        .await
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
        let both = ListQuery { vector: Some([1.0, 0.0].into()), ..by_words(text) };
        candidates(&fixture.index, Query { limit: 5, ..query(both) }).await;
    }
    let containers = Some((0..2_000).map(Uuid::from_u128).collect());
    let nowhere = Query { containers, ..query(by_words("alpha")) };
    assert_eq!(candidates(&fixture.index, nowhere).await.words, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn generations_have_collections_and_one_is_current() {
    let place = Place::find().await;
    let config = place.config.clone();
    let client = Client::new(&config).unwrap();
    let clock = Arc::new(ManualClock::new(Timestamp::from_seconds(1_000_000)));
    let open = || QdrantFactory::open(&config, Arc::<ManualClock>::clone(&clock), ids()).unwrap();
    let identity = |embedder: &str, dimensions| EmbedderIdentity {
        embedder: embedder.to_owned(),
        dimensions,
        origin: "builtin".to_owned(),
    };
    let (first, second) = (identity("first", 2), identity("second/model", 3));
    let collections = async || {
        let all = client.api.list_collections().await.unwrap().collections;
        all.into_iter().filter(|collection| collection.name.starts_with(&config.prefix)).count()
    };

    let factory = open();
    assert_eq!(factory.current().await.unwrap(), None);
    factory.make_current(&first).await.unwrap();
    assert_eq!(open().current().await.unwrap(), Some(first.clone()));
    factory
        .open(&first)
        .await
        .unwrap()
        .apply(Batch { cursors: vec![cursor(3)], ..Batch::default() })
        .await
        .unwrap();
    assert_eq!(open().open(&first).await.unwrap().cursor(FEED, WORKSPACE), 3);

    assert_eq!(factory.open(&second).await.unwrap().cursor(FEED, WORKSPACE), 0);
    assert_eq!(open().current().await.unwrap(), Some(first));
    factory.make_current(&second).await.unwrap();
    assert_eq!(open().current().await.unwrap(), Some(second.clone()));
    factory.keep_only(&second).await.unwrap();
    assert_eq!(collections().await, 2, "others may still use it");
    clock.advance(Duration::from_secs(60 * 60));
    factory.keep_only(&second).await.unwrap();
    assert_eq!((collections().await, open().current().await.unwrap()), (1, Some(second.clone())));
    client.api.delete_collection(super::collection::name(&config.prefix, &second.slug())).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn without_qdrant_every_call_says_so_and_none_panics() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let config = Config {
        url: format!("http://127.0.0.1:{port}"),
        ca: None,
        api_key: Some("secret".to_owned()),
        prefix: "x".to_owned(),
    };
    let index = Index::on(Client::new(&config).unwrap(), "x".to_owned(), 2, ids());
    assert_eq!((index.cursor(FEED, WORKSPACE), index.cursors().len()), (0, 0));
    let errors = [
        index.candidates(query(by_words("alpha"))).await.map(|_| ()).unwrap_err(),
        applied(&index, document(1, &["alpha"]), 1).await.unwrap_err(),
        index.forget(WORKSPACE).await.unwrap_err(),
        index.counts(WORKSPACE).await.map(|_| ()).unwrap_err(),
        index.refresh(FEED, WORKSPACE).await.map(|_| ()).unwrap_err(),
    ];
    for error in errors {
        assert!(matches!(&error, crate::Error::Unavailable(_)), "{error}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
    assert!(index.answers());
    index.maintain().await.unwrap();
    assert!(!index.answers());
}

#[tokio::test(flavor = "multi_thread")]
async fn speaks_tls_with_the_authorities_and_the_key_that_it_is_given() {
    let authority = Authority::new().unwrap();
    let pair = authority.issue("qdrant").unwrap();
    let [certificate, key] =
        [&pair.certificate, &pair.key].map(|file| std::fs::read_to_string(file).unwrap());
    let options =
        FakeQdrantOptions { api_key: Some("right-key".to_owned()), certificate: Some((certificate, key)) };
    let fake = fake(options).await;
    let open = |ca: PathBuf, api_key: &str| {
        let url = format!("https://{}", fake.address());
        let config = Config { url, ca: Some(ca), api_key: Some(api_key.to_owned()), prefix: "x".to_owned() };
        Index::on(Client::new(&config).unwrap(), "x".to_owned(), 2, ids())
    };
    let index = open(authority.ca(), "right-key");
    applied(&index, document(1, &["alpha"]), 1).await.unwrap();
    assert_eq!(found(&index, "alpha").await, [id(1, 0)]);

    let refused = applied(&open(authority.ca(), "wrong-key"), document(2, &["beta"]), 2).await.unwrap_err();
    let message = format!("{refused} {refused:?}");
    assert!(message.contains("CAIRN_QDRANT_API_KEY") && !message.contains("wrong-key"), "{message}");
    let untrusted = open(Authority::new().unwrap().ca(), "right-key");
    let refused = applied(&untrusted, document(2, &["beta"]), 2).await.unwrap_err();
    assert!(matches!(refused, crate::Error::Unavailable(_)), "{refused}");
    assert!(refused.to_string().contains("certificate"), "{refused}");
    assert_eq!(index.refresh(FEED, WORKSPACE).await.unwrap(), 1, "nobody else has written");
}

#[tokio::test]
async fn authorities_that_cannot_be_used_are_told_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (missing, empty) = (folder.path().join("missing.pem"), folder.path().join("empty.pem"));
    std::fs::write(&empty, "no certificate").unwrap();
    for (ca, told) in [(missing, "missing.pem"), (empty, "empty.pem")] {
        let (url, api_key, prefix) = ("https://host:6334".to_owned(), None, "x".to_owned());
        let error = Client::new(&Config { url, ca: Some(ca), api_key, prefix }).map(|_| ()).unwrap_err();
        assert!(matches!(error, crate::Error::Config(_)) && error.to_string().contains(told), "{error}");
    }
}

/// The fake must not accept what Qdrant rejects.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_without_the_key_is_refused() {
    let options = FakeQdrantOptions { api_key: Some("right-key".to_owned()), ..FakeQdrantOptions::default() };
    let fake = fake(options).await;
    let url = format!("http://{}", fake.address());
    let config = Config { url, ca: None, api_key: None, prefix: "x".to_owned() };
    let index = Index::on(Client::new(&config).unwrap(), "x".to_owned(), 2, ids());
    let refused = index.counts(WORKSPACE).await.unwrap_err();
    assert!(refused.to_string().contains("CAIRN_QDRANT_API_KEY"), "{refused}");
}
