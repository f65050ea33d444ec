//! A search in exactly one connected source.

use cairn_chassis::identity::{Identity, Permission, Scope};
use cairn_proto::ids::FolderId;
use cairn_proto::ingest::v1::source_outcome::Outcome;
use cairn_proto::ingest::v1::{ProviderOperations, Source, SourceMode};
use cairn_proto::retrieval::v1::search_service_client::SearchServiceClient;
use cairn_proto::retrieval::v1::{Mode, QuerySourceRequest, QuerySourceResponse, SyncMode};
use tonic::{Code, Status};
use uuid::Uuid;

use crate::modes::{CHAT, Scene, WIKI, codes};
use crate::outside::id;
use crate::owner::FOLDER;

impl Scene {
    async fn query_as(
        &self,
        identity: &Identity,
        source_id: &str,
        query: &str,
        limit: u32,
    ) -> Result<QuerySourceResponse, Status> {
        let (source_id, query) = (source_id.to_owned(), query.to_owned());
        let request = QuerySourceRequest { source_id, query, limit };
        let request = self.bench.owner.issuer.request_as(identity, request).unwrap();
        let mut client = SearchServiceClient::new(self.bench.channel.clone());
        Ok(client.query_source(request).await?.into_inner())
    }

    async fn query(&self, source: u128, query: &str) -> QuerySourceResponse {
        // The index has seen everything.
        self.search("nothing", Mode::Fast).await;
        self.query_as(&self.bench.token(), &id(source), query, 0).await.unwrap()
    }
}

fn documents(answer: &QuerySourceResponse) -> Vec<String> {
    let mut documents: Vec<String> = answer.results.iter().map(|result| result.document_id.clone()).collect();
    documents.dedup();
    documents
}

#[tokio::test(flavor = "multi_thread")]
async fn the_best_of_a_catalog_are_read() {
    let scene = Scene::new().await;
    let answer = scene.query(WIKI, "rollout").await;
    assert_eq!(scene.asked(), [(vec![], vec![id(10), id(11)])], "both, though neither is decisive");
    assert_eq!(documents(&answer), [id(10)], "the other one is gone by now");
    let expected = [("live_fetch", Some(1)), ("catalog_match_not_fetched", Some(1))];
    assert_eq!(codes(&answer.coverage), expected);
    assert_eq!(answer.provider_operations, Some(ProviderOperations { used: 1, remaining_today: 499 }));
    let citation = answer.results[0].citation.clone().unwrap();
    assert_eq!(citation.sync_mode(), SyncMode::Live);
    assert_eq!(citation.external_id.as_deref(), Some("ext Zanzibar rollout"));

    let answer = scene.query(WIKI, "herons").await;
    assert_eq!((documents(&answer), codes(&answer.coverage)), (vec![], vec![]));
    let unspent = ProviderOperations { used: 0, remaining_today: 493 };
    assert_eq!(answer.provider_operations, Some(unspent));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_live_source_is_asked_itself() {
    let scene = Scene::new().await;
    let answer = scene.query(CHAT, "zanzibar").await;
    assert_eq!((documents(&answer), codes(&answer.coverage)), (vec![id(20)], vec![("live_fetch", Some(1))]));
    assert_eq!(scene.asked(), [(vec![id(CHAT)], vec![])]);
    scene.failing(CHAT, Outcome::BudgetExhausted);
    let answer = scene.query(CHAT, "zanzibar").await;
    assert_eq!(
        (documents(&answer), codes(&answer.coverage)),
        (vec![], vec![("provider_budget_exhausted", None)])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn of_an_indexed_source_what_is_retained_is_searched_and_nobody_asked() {
    let mut scene = Scene::new().await;
    let indexed = Source { id: id(902), mode: SourceMode::Indexed.into(), ..Source::default() };
    let owner = scene.bench.owner.outside();
    owner.state.lock().unwrap().sources.push(indexed);
    scene.outside = owner.write_of(30, 902, "Zanzibar.md", "# Zanzibar\n\nIt is an island.\n");
    let answer = scene.query(902, "zanzibar rollout").await;
    assert_eq!((documents(&answer), codes(&answer.coverage)), (vec![id(30)], vec![]));
    let citation = answer.results[0].citation.clone().unwrap();
    assert_eq!((citation.sync_mode(), citation.source_id), (SyncMode::Indexed, Some(id(902))));
    let operations = answer.provider_operations.unwrap();
    assert_eq!((operations.used, operations.remaining_today), (0, 493));
    assert_eq!(scene.asked(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_and_what_is_not_there_is_refused() {
    let scene = Scene::new().await;
    let token = scene.bench.token();
    let unknown = scene.query_as(&token, &id(999), "x", 0).await.unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound);
    let invalid = scene.query_as(&token, "wiki", " ", 21).await.unwrap_err();
    assert_eq!(invalid.code(), Code::InvalidArgument);
    let folder = FolderId(Uuid::from_u128(FOLDER));
    let issuer = &scene.bench.owner.issuer;
    let scoped = issuer.token(scene.bench.workspace, &[Permission::Read], Scope::Folders([folder].into()));
    let refused = scene.query_as(&scoped, &id(WIKI), "x", 0).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    let writer = issuer.token(scene.bench.workspace, &[Permission::Write], Scope::All);
    assert_eq!(scene.query_as(&writer, &id(WIKI), "x", 0).await.unwrap_err().code(), Code::PermissionDenied);
    scene.bench.owner.outside().state.lock().unwrap().is_down = true;
    let down = scene.query_as(&token, &id(WIKI), "x", 0).await.unwrap_err();
    assert_eq!(down.code(), Code::Unavailable);
    assert_eq!(scene.asked(), []);
}
