//! The retrieval service against an owner that the test plays: what the index proposes and the owner disposes of.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking; clippy knows that of test functions, but not of their helpers"
)]

#[path = "service/absence.rs"]
mod absence;
#[path = "service/embedders.rs"]
mod embedders;
#[path = "service/golden.rs"]
mod golden;
#[path = "service/modes.rs"]
mod modes;
#[path = "service/one_source.rs"]
mod one_source;
#[path = "service/outside.rs"]
mod outside;
#[path = "service/owner.rs"]
mod owner;
#[path = "service/providers.rs"]
mod providers;
#[path = "service/ranking.rs"]
mod ranking;
#[cfg(feature = "qdrant")]
#[path = "service/slow_engine.rs"]
mod slow_engine;
#[path = "service/sources.rs"]
mod sources;

use cairn_chassis::channel::ServiceChannel;
use cairn_chassis::clock::SystemClock;
use cairn_chassis::identity::{Permission, Scope, ServiceIdentitySource};
use cairn_chassis::server;
use cairn_chassis::testing::server as double;
use cairn_proto::feed::v1::Op;
use cairn_proto::ids::FolderId;
use cairn_proto::retrieval::v1::search_service_client::SearchServiceClient;
use cairn_proto::retrieval::v1::{FeedPosition, SearchContextRequest, Strategy, Subquery, SubqueryType};
use cairn_retrieval::{Service, Upstreams};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tonic::Code;
use tonic::service::Routes;
use uuid::Uuid;

use self::embedders::eventually;
use self::owner::{Bench, FOLDER, config, open, open_service, request, serve};

const HONEY: &str =
    "# Bees\n\nBees make honey from nectar.\n\n# Bears\n\nA bear sleeps through the winter.\n";

#[tokio::test(flavor = "multi_thread")]
async fn every_strategy_finds_and_cites() {
    let bench = Bench::new().await;
    let position = bench.owner.write(1, "animals.md", HONEY, None);
    for strategy in [Strategy::Keyword, Strategy::Semantic, Strategy::Hybrid] {
        let answer = bench.search("honey nectar", strategy, position).await;
        let best = answer.results.first().unwrap_or_else(|| panic!("{strategy:?} found nothing"));
        assert!(best.content.contains("Bees make honey"), "{strategy:?}: {}", best.content);
        let citation = best.citation.clone().unwrap();
        let location = citation.location.unwrap();
        let lines: Vec<&str> = HONEY.lines().collect();
        let cited = &lines[location.start_line as usize - 1..location.end_line as usize];
        assert_eq!(cited.join("\n"), best.content, "{strategy:?}");
        assert_eq!(citation.path, "/animals.md");
        assert!(best.score > 0.0 && best.score <= 1.0);
        assert!(answer.coverage.is_empty(), "{:?}", answer.coverage);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_owner_has_the_last_word() {
    let bench = Bench::new().await;
    bench.owner.write(1, "one.md", "The launch code is swordfish.\n", None);
    let position = bench.owner.write(2, "two.md", "Swordfish is a fish.\n", None);
    assert_eq!(bench.search("swordfish", Strategy::Keyword, position).await.results.len(), 2);

    bench.owner.trash_silently(1);
    let answer = bench.search("swordfish", Strategy::Hybrid, position).await;
    assert_eq!(answer.results.len(), 1);
    assert_eq!(answer.results[0].document_id, Uuid::from_u128(2).hyphenated().to_string());

    // The text changed and the index does not know yet: the old lines are not shown.
    let id = Uuid::from_u128(2).hyphenated().to_string();
    bench.owner.write_silently(&id, "two.md", "Nothing to see.\n", None);
    let answer = bench.search("swordfish", Strategy::Keyword, position).await;
    assert!(answer.results.is_empty());
    assert_eq!(answer.coverage[0].code, "index_behind");

    let position = bench.owner.tell(&id, Op::Upsert);
    let answer = bench.search("nothing", Strategy::Keyword, position).await;
    assert_eq!(answer.results[0].content, "Nothing to see.");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_is_found_by_its_name_of_now() {
    let bench = Bench::new().await;
    bench.owner.name_folder(FOLDER, "Old harbour");
    let position = bench.owner.write(1, "one.md", "A heron stands still.\n", Some(FOLDER));
    let found = async |query: &str, after| {
        let answer = bench.search(query, Strategy::Keyword, after).await;
        assert!(answer.coverage.is_empty(), "{:?}", answer.coverage);
        answer.results.len()
    };
    assert_eq!([found("harbour", position).await, found("lighthouse", position).await], [1, 0]);
    let before = bench.owner.state.lock().unwrap().asked;
    let position = bench.owner.name_folder(FOLDER, "Lighthouse");
    assert_eq!([found("harbour", position).await, found("lighthouse", position).await], [0, 1]);
    // It is asked for once, and not again while nothing is written.
    let after = bench.owner.state.lock().unwrap().asked;
    assert_eq!(after.folders, before.folders + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_is_found_by_its_databases_name_of_now() {
    let bench = Bench::new().await;
    bench.owner.name_database(3, "Sightings");
    let position = bench.owner.write_record(1, "A heron", "Stands still.\n", 3);
    let found = async |query: &str, after| {
        let answer = bench.search(query, Strategy::Keyword, after).await;
        assert!(answer.coverage.is_empty(), "{:?}", answer.coverage);
        answer.results.len()
    };
    assert_eq!([found("sightings", position).await, found("ringing", position).await], [1, 0]);
    let position = bench.owner.name_database(3, "Ringing");
    assert_eq!([found("sightings", position).await, found("ringing", position).await], [0, 1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_goes_on_without_the_names_of_folders() {
    let bench = Bench::new().await;
    bench.owner.name_folder(FOLDER, "Harbour");
    let position = bench.owner.write(1, "one.md", "A heron stands still.\n", Some(FOLDER));
    bench.owner.state.lock().unwrap().keeps_names_to_itself = true;
    let answer = bench.search("heron", Strategy::Keyword, position).await;
    assert_eq!((answer.results.len(), answer.coverage[0].code.as_str()), (1, "provider_unavailable"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_document_leaves_the_index() {
    let bench = Bench::new().await;
    let position = bench.owner.write(1, "one.md", "A heron stands still.\n", None);
    assert_eq!(bench.search("heron", Strategy::Keyword, position).await.results.len(), 1);
    let id = Uuid::from_u128(1).hyphenated().to_string();
    bench.owner.trash_silently(1);
    let position = bench.owner.tell(&id, Op::Delete);
    assert!(bench.search("heron", Strategy::Keyword, position).await.results.is_empty());
    // Were it back without the feed's word, the index would still know nothing of it.
    bench.owner.state.lock().unwrap().trashed.clear();
    assert!(bench.search("heron", Strategy::Keyword, position).await.results.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scope_narrows_the_lists_before_they_are_cut() {
    let bench = Bench::new().await;
    for number in 0..150 {
        bench.owner.write(1_000 + number, "outside.md", "Badger badger badger badger.\n", None);
    }
    let text =
        "One badger among many other words that make this passage a weaker match than all of the others.\n";
    let position = bench.owner.write(1, "inside.md", text, Some(FOLDER));
    let folder = FolderId(Uuid::from_u128(FOLDER));
    let scoped =
        bench.owner.issuer.token(bench.workspace, &[Permission::Read], Scope::Folders([folder].into()));
    // A search waits for so many documents only as long as a caller would.
    eventually("all is indexed", async || {
        let answer = bench.search_as(&scoped, request("badger", Strategy::Keyword, position)).await.unwrap();
        (!answer.results.is_empty()).then_some(())
    })
    .await;
    for strategy in [Strategy::Keyword, Strategy::Semantic, Strategy::Hybrid] {
        let answer = bench.search_as(&scoped, request("badger", strategy, position)).await.unwrap();
        let found: Vec<&str> = answer.results.iter().map(|result| result.document_id.as_str()).collect();
        assert_eq!(found, [Uuid::from_u128(1).hyphenated().to_string()], "{strategy:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn exclusions_hold_for_every_list() {
    let bench = Bench::new().await;
    bench.owner.write(1, "one.md", "Python is a snake.\n", None);
    let position = bench.owner.write(2, "two.md", "Python is a language.\n", None);
    for strategy in [Strategy::Keyword, Strategy::Semantic, Strategy::Hybrid] {
        let answer = bench.search("python -snake", strategy, position).await;
        assert!(!answer.results.is_empty(), "{strategy:?}");
        assert!(answer.results.iter().all(|result| !result.content.contains("snake")), "{strategy:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_adds_up_to_the_score() {
    let bench = Bench::new().await;
    let position = bench.owner.write(1, "animals.md", HONEY, None);
    let subquery = |kind: SubqueryType, text: &str| Subquery { r#type: kind.into(), text: text.into() };
    let several =
        vec![subquery(SubqueryType::Lex, "bear winter"), subquery(SubqueryType::Hyde, "bears sleep")];
    for (strategy, searches) in [
        (Strategy::Keyword, Vec::new()),
        (Strategy::Semantic, Vec::new()),
        (Strategy::Hybrid, Vec::new()),
        (Strategy::Hybrid, several),
    ] {
        let explained =
            SearchContextRequest { explain: true, searches, ..request("honey", strategy, position) };
        let answer = bench.search_as(&bench.token(), explained).await.unwrap();
        assert!(!answer.results.is_empty());
        for result in answer.results {
            let trace = result.trace.unwrap();
            let sum: f64 = trace.subqueries.iter().map(|list| list.contribution).sum::<f64>() + trace.bonuses;
            assert!((sum - result.score).abs() < 1e-5, "{strategy:?}: {sum} is not {}", result.score);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_budget_cuts_whole_chunks_and_says_so() {
    let bench = Bench::new().await;
    for number in 1..=4 {
        bench.owner.write(
            number,
            "long.md",
            &format!("Otter {number}. {}\n", "river stone ".repeat(100)),
            None,
        );
    }
    let position = bench.owner.write(5, "short.md", "An otter.\n", None);
    let cut = SearchContextRequest { token_budget: 400, ..request("otter", Strategy::Keyword, position) };
    let answer = bench.search_as(&bench.token(), cut).await.unwrap();
    let bytes: usize = answer.results.iter().map(|result| result.content.len()).sum();
    assert!(bytes <= 1_600 && !answer.results.is_empty());
    assert_eq!(answer.coverage[0].code, "token_budget");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_index_folder_comes_back_from_the_feed() {
    let mut bench = Bench::new().await;
    let position = bench.owner.write(1, "animals.md", HONEY, None);
    assert_eq!(bench.search("honey", Strategy::Keyword, position).await.results.len(), 1);
    bench.channel = ServiceChannel::local(Routes::default());
    std::fs::remove_dir_all(bench.folder.path().join("index")).unwrap();
    bench.channel = open(&bench.owner, &bench.folder).await;
    assert_eq!(bench.search("honey", Strategy::Keyword, position).await.results.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_is_not_there_is_a_note_and_not_an_error() {
    let bench = Bench::new().await;
    let position = bench.owner.write(1, "animals.md", HONEY, None);
    let waiting = SearchContextRequest {
        after: vec![FeedPosition { feed: "unknown".into(), position: 1 }],
        ..request("honey", Strategy::Keyword, position)
    };
    let answer = bench.search_as(&bench.token(), waiting).await.unwrap();
    assert_eq!(answer.coverage[0].code, "index_behind");
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_are_checked_here_too() {
    let bench = Bench::new().await;
    let mut client = SearchServiceClient::new(bench.channel.clone());
    let nobody = client.search_context(request("x", Strategy::Hybrid, 0)).await.unwrap_err();
    assert_eq!(nobody.code(), Code::Unauthenticated);
    let writer = bench.owner.issuer.token(bench.workspace, &[Permission::Write], Scope::All);
    let refused = bench.search_as(&writer, request("x", Strategy::Hybrid, 0)).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    let invalid = bench.search_as(&bench.token(), request(" ", Strategy::Hybrid, 0)).await.unwrap_err();
    assert_eq!(invalid.code(), Code::InvalidArgument);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_answers_come_over_tcp() {
    let mut bench = Bench::new().await;
    let upstream = ServiceChannel::local(bench.owner.routes());
    let identity =
        ServiceIdentitySource::new("retrieval", "secret".into(), upstream.clone(), Arc::new(SystemClock));
    let folder = tempfile::tempdir().unwrap();
    let config = config(&folder);
    let ingest = ServiceChannel::local(bench.owner.outside().routes());
    let upstreams = Upstreams { content: upstream, ingest, identity };
    let service = Service::open(config, bench.owner.issuer.ambient(), upstreams).await.unwrap();
    let composed = double::compose(service.routes(), cairn_retrieval::SERVICE_NAMES).await.unwrap();
    let listener = server::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(composed.serve(listener, CancellationToken::new()));

    let position = bench.owner.write(1, "animals.md", HONEY, None);
    let local = bench.search("bear in winter", Strategy::Hybrid, position).await;
    bench.channel = ServiceChannel::remote(&format!("http://{address}")).unwrap();
    let remote = tokio::time::timeout(
        Duration::from_secs(30),
        bench.search("bear in winter", Strategy::Hybrid, position),
    );
    assert_eq!(remote.await.unwrap(), local);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_restored_from_an_older_copy_is_indexed_anew() {
    let mut bench = Bench::new().await;
    bench.owner.write(1, "old.md", "The herons came in March.\n", None);
    let position = bench.owner.write(2, "lost.md", "The herons left in June.\n", None);
    assert_eq!(bench.search("herons", Strategy::Keyword, position).await.results.len(), 2);

    // Back to the first write, and on to another one at the position of the lost one.
    bench.channel = ServiceChannel::local(Routes::default());
    let lost = Uuid::from_u128(2).hyphenated().to_string();
    {
        let mut state = bench.owner.state.lock().unwrap();
        state.feed.truncate(1);
        state.documents.remove(&lost);
    }
    let service = open_service(&bench.owner, &bench.folder).await;
    bench.channel = serve(&service).await;
    let shutdown = CancellationToken::new();
    let watching = tokio::spawn({
        let (service, shutdown) = (service.clone(), shutdown.clone());
        async move { service.run(shutdown).await }
    });
    // Until the index has started over, it believes that it has seen the lost position.
    let started_over = async {
        while bench.search("herons", Strategy::Keyword, position).await.coverage.is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), started_over).await.unwrap();

    let position = bench.owner.write(3, "new.md", "The herons are back.\n", None);
    assert_eq!(position, 2);
    let answer = bench.search("herons back", Strategy::Keyword, position).await;
    assert_eq!(answer.results[0].content, "The herons are back.");
    shutdown.cancel();
    watching.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_position_that_the_feed_does_not_have_is_not_waited_for() {
    let bench = Bench::new().await;
    let position = bench.owner.write(1, "animals.md", HONEY, None);
    let answer = bench.search("honey", Strategy::Keyword, u64::MAX).await;
    assert_eq!(answer.coverage[0].code, "index_behind");
    assert_eq!(answer.results.len(), 1);
    // Nobody else is told that the index is behind because of it.
    assert!(bench.search("honey", Strategy::Keyword, position).await.coverage.is_empty());
}
