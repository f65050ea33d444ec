//! Over the generated clients and the in-process channel, with signed identities.

use cairn_chassis::channel::{MAX_MESSAGE_BYTES, ServiceChannel};
use cairn_chassis::identity::Permission;
use cairn_chassis::server;
use cairn_chassis::status::{Problem, Reason};
use cairn_chassis::testing::identity::Issuer;
use cairn_proto::content::v1 as proto;
use cairn_proto::content::v1::file_service_client::FileServiceClient;
use cairn_proto::content::v1::folder_service_client::FolderServiceClient;
use cairn_proto::document::v1::document_service_client::DocumentServiceClient;
use cairn_proto::document::v1::{ConfirmDocumentsRequest, DocumentRef, ReadDocumentsRequest};
use cairn_proto::feed::v1::feed_service_client::FeedServiceClient;
use cairn_proto::feed::v1::{Kind, Op, ReadFeedRequest, WatchFeedRequest};
use tonic::Status;

use super::*;
use crate::service::{ACCESS, SERVICE_NAMES, Service};

struct Served {
    _test: TestDb,
    issuer: Issuer,
    channel: ServiceChannel,
    workspace: WorkspaceId,
}

async fn serve(test: TestDb) -> Served {
    let issuer = Issuer::new().unwrap();
    let service = Service::open(config(&test), issuer.ambient()).await.unwrap();
    service.ping().await.unwrap();
    let verifier = issuer.ambient().verifier;
    let composed = server::compose(service.routes(), SERVICE_NAMES, &[ACCESS], &verifier).await.unwrap();
    let workspace = caller(1).workspace;
    Served { _test: test, issuer, channel: ServiceChannel::local(composed.routes), workspace }
}

fn reason(status: &Status) -> Reason {
    Problem::from_status(status).reason
}

fn create(name: &str, content: &str) -> proto::CreateFileRequest {
    proto::CreateFileRequest {
        name: name.into(),
        content: content.into(),
        file_type: proto::FileType::Json.into(),
        ..Default::default()
    }
}

#[tokio::test]
async fn a_file_lives_over_grpc() {
    for test in engines().await {
        let served = serve(test).await;
        let mut files = FileServiceClient::new(served.channel.clone())
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES);
        let ask = |message| served.issuer.request(served.workspace, message).unwrap();
        let made = files.create_file(ask(create("a.json", "{}"))).await.unwrap().into_inner();
        let file = made.file.unwrap();
        assert_eq!((made.change_position, file.version, file.content.as_deref()), (1, 1, None));
        assert_eq!(file.file_type(), proto::FileType::Json);
        assert!(file.content_hash.starts_with("blake3:") && file.content_hash.len() == 71);

        let get = proto::GetFileRequest { file_id: file.id.clone() };
        let got =
            files.get_file(served.issuer.request(served.workspace, get).unwrap()).await.unwrap().into_inner();
        assert_eq!(got.file.unwrap(), proto::File { content: Some("{}".into()), ..file.clone() });

        let update = proto::UpdateFileRequest {
            file_id: file.id.clone(),
            name: "not in the mask".into(),
            content: "x".repeat(5_242_880),
            update_mask: Some(prost_types::FieldMask { paths: vec!["content".into()] }),
            if_content_hash: vec![file.content_hash.clone()],
            ..Default::default()
        };
        let updated =
            files.update_file(served.issuer.request(served.workspace, update.clone()).unwrap()).await;
        let updated = updated.unwrap().into_inner().file.unwrap();
        assert_eq!((updated.name.as_str(), updated.version), ("a.json", 2));
        let stale =
            files.update_file(served.issuer.request(served.workspace, update).unwrap()).await.unwrap_err();
        assert_eq!(reason(&stale), Reason::VersionConflict);

        let bad = files.create_file(ask(create("", "\0"))).await.unwrap_err();
        let problem = Problem::from_status(&bad);
        assert_eq!((problem.reason, problem.violations.len()), (Reason::ValidationError, 2));
        let listed =
            files.list_files(served.issuer.request(served.workspace, Default::default()).unwrap()).await;
        assert_eq!(listed.unwrap().into_inner().total_size, 1);
    }
}

#[tokio::test]
async fn every_permission_is_checked_here() {
    let served = serve(engines().await.remove(0)).await;
    let mut files = FileServiceClient::new(served.channel.clone());
    let mut folders = FolderServiceClient::new(served.channel.clone());
    let as_with = |permissions: &[Permission]| served.issuer.token(served.workspace, permissions, Scope::All);
    let nobody = as_with(&[]);
    let reader = as_with(&[Permission::Read]);
    let writer = as_with(&[Permission::Write]);
    macro_rules! refused {
        ($client:ident.$method:ident, $identity:expr, $message:expr) => {
            let request = served.issuer.request_as($identity, $message).unwrap();
            assert_eq!(reason(&$client.$method(request).await.unwrap_err()), Reason::Forbidden);
        };
    }
    refused!(files.get_file, &nobody, proto::GetFileRequest::default());
    refused!(files.list_files, &nobody, proto::ListFilesRequest::default());
    refused!(files.search_files, &nobody, proto::SearchFilesRequest::default());
    refused!(files.create_file, &reader, create("a", ""));
    refused!(files.update_file, &reader, proto::UpdateFileRequest::default());
    refused!(files.delete_file, &writer, proto::DeleteFileRequest::default());
    refused!(folders.get_folder, &nobody, proto::GetFolderRequest::default());
    refused!(folders.list_folders, &nobody, proto::ListFoldersRequest::default());
    refused!(folders.resolve_scope, &nobody, proto::ResolveScopeRequest::default());
    refused!(folders.create_folder, &reader, proto::CreateFolderRequest::default());
    refused!(folders.update_folder, &reader, proto::UpdateFolderRequest::default());
    refused!(folders.delete_folder, &writer, proto::DeleteFolderRequest::default());
    // A service identity without a workspace has no files.
    refused!(files.list_files, &served.issuer.service("retrieval"), proto::ListFilesRequest::default());
    let unsigned = files.list_files(proto::ListFilesRequest::default()).await.unwrap_err();
    assert_eq!(reason(&unsigned), Reason::Unauthorized);
}

#[tokio::test]
async fn retrieval_follows_the_feed_and_confirms() {
    for test in engines().await {
        let served = serve(test).await;
        let mut files = FileServiceClient::new(served.channel.clone());
        let mut feed = FeedServiceClient::new(served.channel.clone());
        let mut documents = DocumentServiceClient::new(served.channel.clone());
        let service = served.issuer.service("retrieval");
        let workspace_id = served.workspace.to_string();
        let made =
            files.create_file(served.issuer.request(served.workspace, create("a.json", "{}")).unwrap()).await;
        let file = made.unwrap().into_inner().file.unwrap();

        let watch = served.issuer.request_as(&service, WatchFeedRequest {}).unwrap();
        let mut heads = feed.watch_feed(watch).await.unwrap().into_inner();
        let head = heads.message().await.unwrap().unwrap();
        assert_eq!((head.workspace_id, head.position), (workspace_id.clone(), 1));
        assert!(heads.message().await.unwrap().unwrap().every_head_told);
        let read = ReadFeedRequest { workspace_id: workspace_id.clone(), after: 0, limit: 0 };
        let page = feed
            .read_feed(served.issuer.request_as(&service, read.clone()).unwrap())
            .await
            .unwrap()
            .into_inner();
        assert_eq!(page.head, 1);
        assert_eq!((page.changes[0].kind(), page.changes[0].op()), (Kind::File, Op::Upsert));
        assert_eq!(page.changes[0].item_id, file.id);

        let refs = vec![DocumentRef { kind: Kind::File.into(), id: file.id.clone() }];
        let wanted = ReadDocumentsRequest { workspace_id, refs: refs.clone() };
        let answer =
            documents.read_documents(served.issuer.request_as(&service, wanted.clone()).unwrap()).await;
        let answer = answer.unwrap().into_inner();
        assert_eq!((answer.read, answer.documents[0].content.as_str()), (1, "{}"));
        let confirm = ConfirmDocumentsRequest { refs };
        let confirmed =
            documents.confirm_documents(served.issuer.request(served.workspace, confirm).unwrap()).await;
        assert_eq!(confirmed.unwrap().into_inner().documents[0].path, "/a.json");

        // The token of a workspace is no service identity.
        let token = served.issuer.request(served.workspace, read).unwrap();
        assert_eq!(reason(&feed.read_feed(token).await.unwrap_err()), Reason::Forbidden);
        let token = served.issuer.request(served.workspace, WatchFeedRequest {}).unwrap();
        assert_eq!(reason(&feed.watch_feed(token).await.unwrap_err()), Reason::Forbidden);
        let token = served.issuer.request(served.workspace, wanted).unwrap();
        assert_eq!(reason(&documents.read_documents(token).await.unwrap_err()), Reason::Forbidden);
    }
}
