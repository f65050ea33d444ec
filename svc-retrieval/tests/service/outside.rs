//! Documents from outside: a second owner with a feed of its own, which may be down.

use std::time::Duration;

use cairn_chassis::channel::ServiceChannel;
use cairn_chassis::identity::{Permission, Scope};
use cairn_proto::document::v1::{Document, DocumentRef};
use cairn_proto::feed::v1::{Kind, Op};
use cairn_proto::ids::FolderId;
use cairn_proto::ingest::v1::{Source, SourceMode};
use cairn_proto::retrieval::v1::{FeedPosition, Mode, SearchContextRequest, SearchContextResponse, Strategy};
use proptest::prelude::*;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use uuid::Uuid;

use crate::owner::{Asked, Bench, FOLDER, Owner, config, open, open_service, request, serve, try_open};

const SOURCE: u128 = 900;

pub(crate) fn id(number: u128) -> String {
    Uuid::from_u128(number).hyphenated().to_string()
}

/// Waits for a write of content and one of the owner of outside documents.
fn after(query: &str, content: u64, outside: u64) -> SearchContextRequest {
    let position = |feed: &str, position| FeedPosition { feed: feed.to_owned(), position };
    SearchContextRequest {
        after: vec![position("content", content), position("ingest", outside)],
        ..request(query, Strategy::Hybrid, 0)
    }
}

fn found(answer: &SearchContextResponse) -> Vec<&str> {
    answer.results.iter().map(|result| result.document_id.as_str()).collect()
}

fn codes(answer: &SearchContextResponse) -> Vec<&str> {
    answer.coverage.iter().map(|note| note.code.as_str()).collect()
}

/// A document of a connected source, without a text.
fn of_source(number: u128, source: u128, title: &str) -> Document {
    Document {
        r#ref: Some(DocumentRef { kind: Kind::SourceDocument.into(), id: id(number) }),
        title: title.to_owned(),
        path: format!("/sources/Wiki/{title}"),
        source_id: Some(id(source)),
        ..Document::default()
    }
}

impl Owner {
    /// Writes a document of a connected source.
    fn write_of_source(&self, number: u128, title: &str, content: &str, catalog_only: bool) -> u64 {
        if catalog_only {
            self.write_entry(number, SOURCE, title)
        } else {
            self.write_of(number, SOURCE, title, content)
        }
    }

    /// Writes a retained document of a connected source.
    pub(crate) fn write_of(&self, number: u128, source: u128, title: &str, content: &str) -> u64 {
        let retained = Document {
            content: content.to_owned(),
            content_hash: format!("hash of {content}"),
            ..of_source(number, source, title)
        };
        self.tell_of(number, retained)
    }

    /// Writes an entry of a catalog.
    pub(crate) fn write_entry(&self, number: u128, source: u128, title: &str) -> u64 {
        self.tell_of(number, Document { catalog_only: true, ..of_source(number, source, title) })
    }

    fn tell_of(&self, number: u128, document: Document) -> u64 {
        self.state.lock().unwrap().documents.insert(id(number), document);
        self.tell(&id(number), Op::Upsert)
    }

    fn connect(&self, mode: SourceMode) {
        let source = Source { id: id(SOURCE), mode: mode.into(), ..Source::default() };
        self.state.lock().unwrap().sources = vec![source];
    }

    fn asked(&self) -> Asked {
        self.state.lock().unwrap().asked
    }

    fn fail(&self, is_down: bool) {
        self.state.lock().unwrap().is_down = is_down;
    }

    /// What it was told that was indexed: the ids with the hashes, each once.
    fn acknowledged(&self) -> Vec<(String, String, u32)> {
        let state = self.state.lock().unwrap();
        let mut all: Vec<_> = state
            .acknowledged
            .iter()
            .map(|told| (told.r#ref.clone().unwrap().id, told.content_hash.clone(), told.chunks))
            .collect();
        all.sort();
        all.dedup();
        all
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn both_feeds_are_searched_and_each_owner_confirms_its_own() {
    let bench = Bench::new().await;
    let inside = bench.owner.write(1, "one.md", "The heron stands in the reeds.\n", None);
    let outside = bench.owner.outside().write(2, "two.md", "A heron was seen at the lake.\n", None);
    let answer = bench.search_as(&bench.token(), after("heron", inside, outside)).await.unwrap();
    let mut ids = found(&answer);
    ids.sort_unstable();
    assert_eq!((ids, codes(&answer)), (vec![&*id(1), &*id(2)], vec![]));
    let ingested = answer.results.iter().find(|result| result.document_id == id(2)).unwrap();
    let citation = ingested.citation.as_ref().unwrap();
    assert_eq!(citation.kind(), Kind::Ingested);
    assert_eq!(citation.url, format!("/documents/{}", id(2)));
    assert_eq!(citation.address.as_deref(), Some("https://outside.example/two.md"));

    bench.owner.outside().trash_silently(2);
    let answer = bench.search_as(&bench.token(), after("heron", inside, outside)).await.unwrap();
    assert_eq!(found(&answer), [id(1)], "the owner has the last word");
}

#[tokio::test(flavor = "multi_thread")]
async fn kinds_and_sources_narrow() {
    let bench = Bench::new().await;
    bench.owner.outside().connect(SourceMode::Indexed);
    let inside = bench.owner.write(1, "one.md", "The heron stands in the reeds.\n", None);
    bench.owner.outside().write(2, "two.md", "A heron was seen at the lake.\n", None);
    let outside = bench.owner.outside().write_of_source(3, "three.md", "Herons eat fish.\n", false);
    let all = after("heron", inside, outside);
    let kinds = |kind: Kind| SearchContextRequest { kinds: vec![kind.into()], ..all.clone() };
    let named = |ids: &[String]| SearchContextRequest { source_ids: ids.to_vec(), ..all.clone() };
    for (request, expected) in [
        (kinds(Kind::Ingested), vec![id(2)]),
        (kinds(Kind::SourceDocument), vec![id(3)]),
        (kinds(Kind::File), vec![id(1)]),
        (named(&[id(SOURCE)]), vec![id(3)]),
        (named(&[id(901)]), vec![]),
    ] {
        let answer = bench.search_as(&bench.token(), request).await.unwrap();
        assert_eq!(found(&answer), expected);
    }
    let answer = bench.search_as(&bench.token(), named(&[id(901)])).await.unwrap();
    assert_eq!(codes(&answer), ["source_excluded"]);
    assert_eq!(answer.coverage[0].source_id, Some(id(901)));
    let answer = bench.search_as(&bench.token(), named(&[id(SOURCE)])).await.unwrap();
    let source = answer.results[0].source.clone().unwrap();
    assert_eq!((source.id, source.name, source.provider), (id(SOURCE), "Wiki".into(), "notion".into()));
    assert_eq!(answer.results[0].citation.as_ref().unwrap().source_id, Some(id(SOURCE)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_of_some_folders_finds_nothing_from_outside() {
    let bench = Bench::new().await;
    bench.owner.outside().connect(SourceMode::Indexed);
    let inside = bench.owner.write(1, "one.md", "The heron stands in the reeds.\n", Some(FOLDER));
    bench.owner.outside().write(2, "two.md", "A heron was seen at the lake.\n", None);
    let outside = bench.owner.outside().write_of_source(3, "three.md", "Herons eat fish.\n", false);
    let folder = FolderId(Uuid::from_u128(FOLDER));
    let scoped =
        bench.owner.issuer.token(bench.workspace, &[Permission::Read], Scope::Folders([folder].into()));
    let request = after("heron", inside, outside);
    let answer = bench.search_as(&scoped, request.clone()).await.unwrap();
    assert_eq!(found(&answer), [id(1)]);
    let named = SearchContextRequest { source_ids: vec![id(SOURCE)], ..request };
    let answer = bench.search_as(&scoped, named).await.unwrap();
    assert_eq!((found(&answer), codes(&answer)), (vec![], vec!["out_of_scope"]));
    assert_eq!(bench.owner.outside().asked(), Asked::default());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_without_outside_documents_asks_their_owner_nothing() {
    let bench = Bench::new().await;
    let position = bench.owner.write(1, "one.md", "The heron stands in the reeds.\n", None);
    let kinds = vec![Kind::File.into(), Kind::Ingested.into()];
    let narrowed = SearchContextRequest { kinds, ..request("heron", Strategy::Hybrid, position) };
    for request in [request("heron", Strategy::Hybrid, position), narrowed] {
        let answer = bench.search_as(&bench.token(), request).await.unwrap();
        assert_eq!((found(&answer), codes(&answer)), (vec![&*id(1)], vec![]));
    }
    assert_eq!(bench.owner.outside().asked(), Asked::default());
}

#[tokio::test(flavor = "multi_thread")]
async fn content_is_found_while_the_owner_of_outside_documents_is_down() {
    let bench = Bench::new().await;
    let inside = bench.owner.write(1, "one.md", "The heron stands in the reeds.\n", None);
    let outside = bench.owner.outside().write(2, "two.md", "A heron was seen at the lake.\n", None);
    bench.search_as(&bench.token(), after("heron", inside, outside)).await.unwrap();
    bench.owner.outside().fail(true);
    let inside = bench.owner.write(3, "three.md", "No heron here.\n", None);
    for _ in 0..3 {
        let answer = bench.search_as(&bench.token(), after("heron", inside, outside)).await.unwrap();
        let mut ids = found(&answer);
        ids.sort_unstable();
        assert_eq!((ids, codes(&answer)), (vec![&*id(1), &*id(3)], vec!["provider_unavailable"]));
        assert_eq!(answer.coverage[0].count, Some(1));
    }
    // Left alone after the second failure.
    let fresh = SearchContextRequest { mode: Mode::Fresh.into(), ..after("heron", inside, outside) };
    let answer = bench.search_as(&bench.token(), fresh).await.unwrap();
    assert_eq!(found(&answer).len(), 2);
    let named = SearchContextRequest { source_ids: vec![id(SOURCE)], ..after("heron", inside, outside) };
    let answer = bench.search_as(&bench.token(), named).await.unwrap();
    assert_eq!((found(&answer), codes(&answer)), (vec![], vec!["provider_unavailable"]));
    // A write that it cannot tell of is not waited for longer than asked.
    let late = SearchContextRequest {
        max_wait: prost_types::Duration::try_from(Duration::from_millis(50)).ok(),
        ..after("heron", inside, outside + 1)
    };
    let answer = bench.search_as(&bench.token(), late).await.unwrap();
    assert!(codes(&answer).contains(&"index_behind") && found(&answer).len() == 2, "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_of_a_catalog_is_no_evidence() {
    let bench = Bench::new().await;
    bench.owner.outside().connect(SourceMode::Catalog);
    let inside = bench.owner.write(1, "one.md", "The heron stands in the reeds.\n", None);
    let outside = bench.owner.outside().write_of_source(3, "Heron.md", "The heron of the wiki.\n", false);
    let answer = bench.search_as(&bench.token(), after("heron", inside, outside)).await.unwrap();
    assert_eq!(found(&answer).len(), 2);
    let outside = bench.owner.outside().write_of_source(3, "Heron.md", "", true);
    let answer = bench.search_as(&bench.token(), after("heron", inside, outside)).await.unwrap();
    assert_eq!(found(&answer), [id(1)], "what was retained is gone");
    let outside = bench.owner.outside().write_of_source(3, "Heron.md", "The heron is back.\n", false);
    let answer = bench.search_as(&bench.token(), after("heron", inside, outside)).await.unwrap();
    assert_eq!(found(&answer).len(), 2);
}

/// Until it holds, or for ten seconds.
async fn eventually(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..1_200 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(holds(), "{what}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_owner_is_told_what_was_indexed_and_again_when_the_answer_was_lost() {
    let bench = Bench::new().await;
    let outside = bench.owner.outside().clone();
    outside.state.lock().unwrap().lost_answers = 1;
    outside.write(1, "one.md", "One heron.\n", None);
    outside.write(2, "two.md", "\n", None);
    outside.write_of_source(3, "three.md", "", true);
    let service = open_service(&bench.owner, &tempfile::tempdir().unwrap()).await;
    let shutdown = CancellationToken::new();
    let running = tokio::spawn({
        let (service, shutdown) = (service.clone(), shutdown.clone());
        async move { service.run(shutdown).await }
    });
    let expected = vec![
        (id(1), "hash of One heron.\n".to_owned(), 1),
        (id(2), "hash of \n".to_owned(), 0),
        (id(3), String::new(), 1),
    ];
    let times = || outside.state.lock().unwrap().acknowledged.iter().filter(|one| one.chunks == 1).count();
    eventually("it is not told twice", || times() >= 4).await;
    assert_eq!(outside.acknowledged(), expected);
    shutdown.cancel();
    running.await.unwrap();
}

/// Ends the service with what it has committed, and starts another one on the same folder.
async fn killed(bench: &mut Bench) {
    bench.channel = ServiceChannel::local(Routes::default());
    // What was under way still holds the folder.
    for _ in 0..1_000 {
        match try_open(&bench.owner, config(&bench.folder)).await {
            Ok(service) => return bench.channel = serve(&service).await,
            Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
    bench.channel = open(&bench.owner, &bench.folder).await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    /// Killed between any two steps, with what it committed or without: in the end everything that lives is found, and what
    /// does not live is not.
    #[test]
    fn two_cursors_lose_nothing(steps in prop::collection::vec((0_u8..5, 1_u128..5), 1..14)) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async move {
            let mut bench = Bench::new().await;
            let (mut inside, mut outside) = (0, 0);
            for (step, number) in steps {
                match step {
                    0 => inside = bench.owner.write(number, "in.md", &format!("heron {number}\n"), None),
                    1 => {
                        let text = format!("heron {number} outside\n");
                        outside = bench.owner.outside().write(100 + number, "out.md", &text, None);
                    }
                    2 => {
                        let id = id(100 + number);
                        bench.owner.outside().state.lock().unwrap().documents.remove(&id);
                        outside = bench.owner.outside().tell(&id, Op::Delete);
                    }
                    3 => {
                        // One of both is brought up to date, and the other is not.
                        let (inside, outside) = if number % 2 == 0 { (inside, 0) } else { (0, outside) };
                        bench.search_as(&bench.token(), after("heron", inside, outside)).await.unwrap();
                    }
                    _ => killed(&mut bench).await,
                }
            }
            let request = SearchContextRequest { limit: 50, ..after("heron", inside, outside) };
            let answer = bench.search_as(&bench.token(), request).await.unwrap();
            let ids = |owner: &Owner| owner.state.lock().unwrap().documents.keys().cloned().collect::<Vec<_>>();
            let mut expected = [ids(&bench.owner), ids(bench.owner.outside())].concat();
            let mut seen: Vec<String> = found(&answer).into_iter().map(ToOwned::to_owned).collect();
            expected.sort();
            seen.sort();
            assert_eq!(seen, expected);
            assert_eq!(codes(&answer), Vec::<&str>::new());
        });
    }
}
