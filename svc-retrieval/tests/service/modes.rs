//! How far a search goes for what is not retained: catalogs, and providers that are asked.

use std::time::{Duration, Instant};

use cairn_chassis::identity::{Permission, Scope};
use cairn_proto::feed::v1::Kind;
use cairn_proto::ids::FolderId;
use cairn_proto::ingest::v1::source_outcome::Outcome;
use cairn_proto::ingest::v1::{Source, SourceMode};
use cairn_proto::retrieval::v1::{
    CoverageNote, FeedPosition, Mode, SearchContextRequest, SearchContextResponse, Strategy, Subquery,
    SubqueryType, SyncMode,
};
use uuid::Uuid;

use crate::outside::id;
use crate::owner::{Asked, Bench, FOLDER, request};
use crate::providers::live;

pub(crate) const WIKI: u128 = 900;
pub(crate) const CHAT: u128 = 901;
/// An entry of the wiki's catalog.
const ROLLOUT: u128 = 10;
const PLAN: &str =
    "# Zanzibar\n\nThe rollout of zanzibar begins in May.\n\n# Budget\n\nNobody knows the budget.\n";

/// A workspace with a note, a wiki of which the catalog is kept, and a chat of which nothing is kept.
pub(crate) struct Scene {
    pub(crate) bench: Bench,
    inside: u64,
    pub(crate) outside: u64,
}

impl Scene {
    pub(crate) async fn new() -> Self {
        let bench = Bench::new().await;
        let inside = bench.owner.write(1, "note.md", "A zanzibar rollout was talked about.\n", None);
        let owner = bench.owner.outside();
        let connected = |source: u128, mode: SourceMode| Source {
            id: id(source),
            mode: mode.into(),
            ..Source::default()
        };
        {
            let mut state = owner.state.lock().unwrap();
            state.sources = vec![connected(WIKI, SourceMode::Catalog), connected(CHAT, SourceMode::Live)];
            let body = live(&id(ROLLOUT), &id(WIKI), "Zanzibar rollout", PLAN);
            state.providers.bodies.insert(id(ROLLOUT), body);
            let message = "Zanzibar moved to June, says the chat.\n";
            let found = vec![live(&id(20), &id(CHAT), "#plans", message)];
            state.providers.hits.insert(id(CHAT), found);
        }
        owner.write_entry(ROLLOUT, WIKI, "Zanzibar rollout");
        owner.write_entry(11, WIKI, "Mobile rollout");
        let outside = owner.write_entry(12, WIKI, "Budget of May");
        Self { bench, inside, outside }
    }

    fn asking(&self, query: &str, mode: Mode) -> SearchContextRequest {
        let position = |feed: &str, position| FeedPosition { feed: feed.to_owned(), position };
        let after = vec![position("content", self.inside), position("ingest", self.outside)];
        SearchContextRequest { after, mode: mode.into(), ..request(query, Strategy::Hybrid, 0) }
    }

    async fn ask(&self, request: SearchContextRequest) -> SearchContextResponse {
        self.bench.search_as(&self.bench.token(), request).await.unwrap()
    }

    pub(crate) async fn search(&self, query: &str, mode: Mode) -> SearchContextResponse {
        self.ask(self.asking(query, mode)).await
    }

    /// What the providers were asked: sources and documents.
    pub(crate) fn asked(&self) -> Vec<(Vec<String>, Vec<String>)> {
        let state = self.bench.owner.outside().state.lock().unwrap();
        state.providers.asked.iter().map(|it| (it.source_ids.clone(), it.document_ids.clone())).collect()
    }

    pub(crate) fn failing(&self, source: u128, outcome: Outcome) {
        self.bench.owner.outside().state.lock().unwrap().providers.failing.insert(id(source), outcome);
    }
}

/// The codes of notes with their counts.
pub(crate) fn codes(coverage: &[CoverageNote]) -> Vec<(&str, Option<u32>)> {
    coverage.iter().map(|note| (note.code.as_str(), note.count)).collect()
}

fn notes(answer: &SearchContextResponse) -> Vec<(&str, Option<String>, Option<u32>)> {
    answer.coverage.iter().map(|note| (note.code.as_str(), note.source_id.clone(), note.count)).collect()
}

fn found(answer: &SearchContextResponse) -> Vec<String> {
    let mut ids: Vec<String> = answer.results.iter().map(|result| result.document_id.clone()).collect();
    ids.sort();
    ids.dedup();
    ids
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decisive_match_is_read_and_cited_live() {
    let scene = Scene::new().await;
    for mode in [Mode::Unspecified, Mode::Balanced] {
        let answer = scene.search("zanzibar rollout", mode).await;
        assert_eq!(found(&answer), [id(1), id(ROLLOUT)]);
        let expected =
            [("live_fetch", Some(id(WIKI)), Some(1)), ("catalog_match_not_fetched", Some(id(WIKI)), Some(1))];
        assert_eq!(notes(&answer), expected);
        let read = answer.results.iter().find(|result| result.document_id == id(ROLLOUT)).unwrap();
        let citation = read.citation.clone().unwrap();
        assert_eq!((citation.kind(), citation.sync_mode()), (Kind::SourceDocument, SyncMode::Live));
        assert_eq!(citation.address.as_deref(), Some("https://notion.example/Zanzibar rollout"));
        assert_eq!(citation.content_hash, "live hash of Zanzibar rollout");
        assert_eq!(citation.external_id.as_deref(), Some("ext Zanzibar rollout"));
        let place = citation.location.unwrap();
        let lines: Vec<&str> = PLAN.lines().collect();
        let cited = &lines[place.start_line as usize - 1..place.end_line as usize];
        assert_eq!(cited.join("\n"), read.content);
        let source = read.source.clone().unwrap();
        assert_eq!((source.id, source.name, source.provider), (id(WIKI), "Wiki".into(), "notion".into()));
    }
    assert_eq!(scene.asked(), [(vec![], vec![id(ROLLOUT)]), (vec![], vec![id(ROLLOUT)])]);
}

#[tokio::test(flavor = "multi_thread")]
async fn fast_asks_nobody_and_says_nothing_of_it() {
    let scene = Scene::new().await;
    let answer = scene.search("zanzibar rollout", Mode::Fast).await;
    assert_eq!((found(&answer), notes(&answer)), (vec![id(1)], vec![]));
    assert_eq!(scene.asked(), []);
    assert_eq!(scene.bench.owner.outside().state.lock().unwrap().asked, Asked::default());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_decisive_is_a_note() {
    let scene = Scene::new().await;
    let answer = scene.search("rollout", Mode::Balanced).await;
    assert_eq!(found(&answer), [id(1)]);
    assert_eq!(notes(&answer), [("catalog_match_not_fetched", Some(id(WIKI)), Some(2))]);
    let answer = scene.search("herons in the reeds", Mode::Balanced).await;
    assert_eq!(notes(&answer), []);
    let answer = scene.search("zanzibar -rollout", Mode::Balanced).await;
    assert_eq!(notes(&answer), [], "what is excluded is no match");
    assert_eq!(scene.asked(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn fresh_asks_live_sources_too_and_they_take_turns_with_what_is_retained() {
    let scene = Scene::new().await;
    let explained = SearchContextRequest { explain: true, ..scene.asking("zanzibar rollout", Mode::Fresh) };
    let subquery = Subquery { r#type: SubqueryType::Lex.into(), text: "june".into() };
    let several = SearchContextRequest { searches: vec![subquery], ..explained.clone() };
    for request in [explained, several] {
        let answer = scene.ask(request).await;
        assert_eq!(found(&answer), [id(1), id(ROLLOUT), id(20)]);
        let expected = [
            ("live_fetch", Some(id(WIKI)), Some(1)),
            ("live_fetch", Some(id(CHAT)), Some(1)),
            ("catalog_match_not_fetched", Some(id(WIKI)), Some(1)),
        ];
        assert_eq!(notes(&answer), expected);
        let best: Vec<&str> = answer.results[..2].iter().map(|it| it.document_id.as_str()).collect();
        assert!(best.contains(&id(1).as_str()), "{best:?}");
        for result in &answer.results {
            let trace = result.trace.as_ref().unwrap();
            let ranks: Vec<(&str, bool)> =
                trace.subqueries.iter().map(|list| (list.r#type.as_str(), list.rank > 0)).collect();
            let is_live = result.document_id != id(1);
            assert_eq!(ranks, [("indexed", !is_live), ("live", is_live)]);
            let sum: f64 = trace.subqueries.iter().map(|list| list.contribution).sum::<f64>() + trace.bonuses;
            assert!((sum - result.score).abs() < 1e-5, "{sum} is not {}", result.score);
        }
    }
    assert_eq!(scene.asked()[0], (vec![id(CHAT)], vec![id(ROLLOUT)]));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_narrows_a_search_narrows_whom_it_asks() {
    let scene = Scene::new().await;
    let fresh = scene.asking("zanzibar rollout", Mode::Fresh);
    let named = |source: u128| SearchContextRequest { source_ids: vec![id(source)], ..fresh.clone() };
    let answer = scene.ask(named(WIKI)).await;
    assert_eq!(found(&answer), [id(ROLLOUT)]);
    let answer = scene.ask(named(CHAT)).await;
    assert_eq!(
        (found(&answer), notes(&answer)),
        (vec![id(20)], vec![("live_fetch", Some(id(CHAT)), Some(1))])
    );
    let answer = scene.ask(SearchContextRequest { mode: Mode::Balanced.into(), ..named(CHAT) }).await;
    assert_eq!((found(&answer), notes(&answer)), (vec![], vec![]));
    let kinds = |kind: Kind| SearchContextRequest { kinds: vec![kind.into()], ..fresh.clone() };
    let answer = scene.ask(kinds(Kind::SourceDocument)).await;
    assert_eq!(found(&answer), [id(ROLLOUT), id(20)]);
    let tagged = SearchContextRequest { tags: vec!["plans".into()], ..fresh.clone() };
    for request in [kinds(Kind::File), kinds(Kind::Ingested), tagged] {
        assert_eq!(notes(&scene.ask(request).await), []);
    }
    let excluding = scene.asking("zanzibar rollout -june", Mode::Fresh);
    assert_eq!(found(&scene.ask(excluding).await), [id(1), id(ROLLOUT)]);
    let short = SearchContextRequest { token_budget: 1, ..fresh.clone() };
    assert_eq!(scene.ask(short).await.results, []);
    let one = SearchContextRequest { limit: 1, ..fresh };
    assert_eq!(scene.ask(one).await.results.len(), 1);
    let expected =
        [(vec![], vec![id(ROLLOUT)]), (vec![id(CHAT)], vec![]), (vec![id(CHAT)], vec![id(ROLLOUT)])];
    assert_eq!(scene.asked()[..3], expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_of_some_folders_asks_nobody() {
    let scene = Scene::new().await;
    let folder = FolderId(Uuid::from_u128(FOLDER));
    let issuer = &scene.bench.owner.issuer;
    let scoped = issuer.token(scene.bench.workspace, &[Permission::Read], Scope::Folders([folder].into()));
    let answer = scene.bench.search_as(&scoped, scene.asking("zanzibar rollout", Mode::Fresh)).await.unwrap();
    assert_eq!((found(&answer), notes(&answer), scene.asked()), (vec![], vec![], vec![]));
}

#[tokio::test(flavor = "multi_thread")]
async fn providers_that_fail_are_notes() {
    let scene = Scene::new().await;
    scene.failing(WIKI, Outcome::BudgetExhausted);
    scene.failing(CHAT, Outcome::Unavailable);
    let answer = scene.search("zanzibar rollout", Mode::Fresh).await;
    assert_eq!(found(&answer), [id(1)]);
    let expected = [
        ("provider_budget_exhausted", Some(id(WIKI)), None),
        ("provider_unavailable", Some(id(CHAT)), None),
        ("catalog_match_not_fetched", Some(id(WIKI)), Some(2)),
    ];
    assert_eq!(notes(&answer), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_does_not_wait_for_providers_for_long() {
    let scene = Scene::new().await;
    scene.search("zanzibar rollout", Mode::Fast).await;
    scene.bench.owner.outside().state.lock().unwrap().providers.delay = Duration::from_secs(20);
    let began = Instant::now();
    let answer = scene.search("zanzibar rollout", Mode::Fresh).await;
    assert!(began.elapsed() < Duration::from_millis(4_500), "{:?}", began.elapsed());
    assert_eq!(found(&answer), [id(1)]);
    let expected = [
        ("provider_unavailable", Some(id(CHAT)), None),
        ("provider_unavailable", Some(id(WIKI)), None),
        ("catalog_match_not_fetched", Some(id(WIKI)), Some(2)),
    ];
    assert_eq!(notes(&answer), expected);
}
