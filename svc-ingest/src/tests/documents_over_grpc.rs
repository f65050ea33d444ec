//! Who may call what.

use cairn_chassis::channel::ServiceChannel;
use cairn_chassis::feed::Kind;
use cairn_chassis::identity::{Identity, Permission, Role, Scope};
use cairn_chassis::server;
use cairn_chassis::testing::identity::Issuer;
use cairn_proto::document::v1::ReadDocumentsRequest;
use cairn_proto::document::v1::document_service_client::DocumentServiceClient;
use cairn_proto::ingest::v1::indexing_service_client::IndexingServiceClient;
use cairn_proto::ingest::v1::ingest_service_client::IngestServiceClient;
use cairn_proto::ingest::v1::live_service_client::LiveServiceClient;
use cairn_proto::ingest::v1::location_service_client::LocationServiceClient;
use cairn_proto::ingest::v1::tree_service_client::TreeServiceClient;
use cairn_proto::ingest::v1::{
    AckDocumentsRequest, AskProvidersRequest, DeleteIngestedDocumentRequest, GetIngestedContentRequest,
    GetUsageRequest, IngestDocumentRequest, IngestDraft, ListTreeRequest, LocateDocumentRequest,
};
use tonic::Code;

use super::*;
use crate::service::{ACCESS, SERVICE_NAMES, Service};

async fn channel(test: &TestDb, issuer: &Issuer) -> ServiceChannel {
    let ambient = issuer.ambient();
    let verifier = ambient.verifier.clone();
    let service = Service::open(config(test), ambient).await.unwrap();
    let composed = server::compose(service.routes(), SERVICE_NAMES, &[ACCESS], &verifier).await.unwrap();
    ServiceChannel::local(composed.routes)
}

fn sent() -> IngestDocumentRequest {
    let draft = IngestDraft { idempotency_key: "k".into(), title: "A".into(), ..IngestDraft::default() };
    IngestDocumentRequest { draft: Some(draft), content: "text".into(), content_type: 0 }
}

#[tokio::test]
async fn each_method_asks_for_its_permission() {
    for test in engines().await {
        let issuer = Issuer::new().unwrap();
        let mut ingest = IngestServiceClient::new(channel(&test, &issuer).await);
        let mine = workspace(1);
        let may = |permission: Permission| issuer.token(mine, &[permission], Scope::All);
        let reads = may(Permission::Read);
        let status = ingest.ingest_document(issuer.request_as(&reads, sent()).unwrap()).await.unwrap_err();
        assert_eq!(status.code(), Code::PermissionDenied);
        let taken = ingest.ingest_document(issuer.request_as(&may(Permission::Write), sent()).unwrap()).await;
        let document_id = taken.unwrap().into_inner().document.unwrap().id;
        let content = GetIngestedContentRequest { document_id: document_id.clone() };
        let read = ingest.get_ingested_content(issuer.request_as(&reads, content).unwrap()).await.unwrap();
        assert_eq!(read.get_ref().content, "text");
        assert_eq!(read.get_ref().mime_type, "text/markdown");
        let delete = DeleteIngestedDocumentRequest { document_id };
        let writes = issuer.request_as(&may(Permission::Write), delete.clone()).unwrap();
        assert_eq!(ingest.delete_ingested_document(writes).await.unwrap_err().code(), Code::PermissionDenied);
        let usage = ingest.get_usage(issuer.request_as(&reads, GetUsageRequest {}).unwrap()).await.unwrap();
        assert_eq!((usage.get_ref().documents, usage.get_ref().storage_bytes), (1, 4));
        let deletes = issuer.request_as(&may(Permission::Delete), delete).unwrap();
        ingest.delete_ingested_document(deletes).await.unwrap();
    }
}

#[tokio::test]
async fn people_find_the_workspace_of_a_document_among_those_that_they_name() {
    for test in engines().await {
        let issuer = Issuer::new().unwrap();
        let channel = channel(&test, &issuer).await;
        let writes = issuer.token(workspace(1), &[Permission::Write], Scope::All);
        let mut ingest = IngestServiceClient::new(channel.clone());
        let taken = ingest.ingest_document(issuer.request_as(&writes, sent()).unwrap()).await.unwrap();
        let document = taken.into_inner().document.unwrap().id;
        let mut locations = LocationServiceClient::new(channel);
        let (here, elsewhere) = (workspace(1).to_string(), workspace(2).to_string());
        let ask = |id: &str, among: &[&str]| LocateDocumentRequest {
            document_id: id.into(),
            workspace_ids: among.iter().map(|&id| id.to_owned()).collect(),
        };
        let person = Identity { workspace: None, role: None, ..issuer.member(workspace(1), Role::Viewer) };
        let by_person = |message| issuer.request_as(&person, message).unwrap();
        let both = ask(&document, &["x", &elsewhere, &here]);
        let found = locations.locate_document(by_person(both.clone())).await.unwrap().into_inner();
        assert_eq!((found.workspace_id.as_str(), found.kind()), (here.as_str(), Kind::Ingested));
        for unknown in [ask(&document, &[&elsewhere]), ask(&document, &[]), ask("\0", &[&here])] {
            let status = locations.locate_document(by_person(unknown)).await.unwrap_err();
            assert_eq!(status.code(), Code::NotFound);
        }
        let many = ask(&document, &vec![here.as_str(); 201]);
        let status = locations.locate_document(by_person(many)).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
        let token = issuer.token(workspace(1), &Permission::ALL, Scope::All);
        let status = locations.locate_document(issuer.request_as(&token, both).unwrap()).await.unwrap_err();
        assert_eq!(status.code(), Code::PermissionDenied);
    }
}

#[tokio::test]
async fn providers_are_asked_for_who_may_read_the_whole_workspace() {
    for test in engines().await {
        let issuer = Issuer::new().unwrap();
        let mut live = LiveServiceClient::new(channel(&test, &issuer).await);
        let sent = || AskProvidersRequest { query: "plan".into(), ..AskProvidersRequest::default() };
        let writer = issuer.token(workspace(1), &[Permission::Write], Scope::All);
        let refused = live.ask_providers(issuer.request_as(&writer, sent()).unwrap()).await.unwrap_err();
        assert_eq!(refused.code(), Code::PermissionDenied);
        let folders = [FolderId(Uuid::from_u128(9))];
        let bound = issuer.scoped_request(workspace(1), &folders, sent()).unwrap();
        let refused = live.ask_providers(bound).await.unwrap_err();
        assert_eq!(refused.code(), Code::PermissionDenied);
        assert!(refused.message().contains("bound to folders"), "{refused:?}");
        let reader = issuer.token(workspace(1), &[Permission::Read], Scope::All);
        let answer = live.ask_providers(issuer.request_as(&reader, sent()).unwrap()).await.unwrap();
        assert!(answer.get_ref().outcomes.is_empty(), "nothing is connected");
    }
}

#[tokio::test]
async fn what_is_for_services_is_for_nobody_else() {
    let [test, ..] = engines().await.try_into().unwrap_or_else(|mut all: Vec<TestDb>| [all.remove(0)]);
    let issuer = Issuer::new().unwrap();
    let channel = channel(&test, &issuer).await;
    let mine = workspace(1);
    let mut documents = DocumentServiceClient::new(channel.clone());
    let status =
        documents.read_documents(issuer.request(mine, ReadDocumentsRequest::default()).unwrap()).await;
    assert_eq!(status.unwrap_err().code(), Code::PermissionDenied);
    let mut tree = TreeServiceClient::new(channel.clone());
    let status = tree.list_tree(issuer.request(mine, ListTreeRequest::default()).unwrap()).await;
    assert_eq!(status.unwrap_err().code(), Code::PermissionDenied);
    let mut indexing = IndexingServiceClient::new(channel);
    let told = AckDocumentsRequest { workspace_id: mine.to_string(), documents: Vec::new() };
    let status = indexing.ack_documents(issuer.request(mine, told.clone()).unwrap()).await;
    assert_eq!(status.unwrap_err().code(), Code::PermissionDenied);
    let retrieval = issuer.service("retrieval");
    indexing.ack_documents(issuer.request_as(&retrieval, told).unwrap()).await.unwrap();
}
