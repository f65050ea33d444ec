//! Assets over the generated clients and the in-process channel, with signed identities.

use bytes::Bytes;
use cairn_chassis::channel::ServiceChannel;
use cairn_chassis::identity::Permission;
use cairn_chassis::server;
use cairn_chassis::status::{Problem, Reason};
use cairn_chassis::testing::identity::Issuer;
use cairn_proto::content::v1 as proto;
use cairn_proto::content::v1::asset_service_client::AssetServiceClient;
use cairn_proto::content::v1::download_asset_response::Part as Sent;
use cairn_proto::content::v1::upload_asset_request::Part;
use futures::stream::{self, StreamExt as _};
use tonic::Status;

use super::*;
use crate::service::{ACCESS, SERVICE_NAMES, Service};

struct Served {
    issuer: Issuer,
    assets: AssetServiceClient<ServiceChannel>,
    workspace: WorkspaceId,
    folder: tempfile::TempDir,
    test: TestDb,
}

async fn serve(test: TestDb) -> Served {
    let issuer = Issuer::new().unwrap();
    let folder = tempfile::TempDir::new().unwrap();
    let config = Config { assets: AssetLocation::Folder(folder.path().into()), ..config(&test) };
    let service = Service::open(config, issuer.ambient()).await.unwrap();
    let verifier = issuer.ambient().verifier;
    let composed = server::compose(service.routes(), SERVICE_NAMES, &[ACCESS], &verifier).await.unwrap();
    let assets = AssetServiceClient::new(ServiceChannel::local(composed.routes));
    Served { issuer, assets, workspace: caller(1).workspace, folder, test }
}

impl Served {
    /// The number of files in the store, of every kind.
    fn stored(&self) -> usize {
        let folders = std::fs::read_dir(self.folder.path()).unwrap();
        folders.map(|folder| std::fs::read_dir(folder.unwrap().path()).unwrap().count()).sum()
    }
}

fn part(part: Part) -> proto::UploadAssetRequest {
    proto::UploadAssetRequest { part: Some(part) }
}

fn draft(name: &str) -> proto::UploadAssetRequest {
    let draft = proto::AssetDraft {
        name: name.into(),
        media_type: "image/png".into(),
        size_bytes: None,
        new_id: None,
    };
    part(Part::Draft(draft))
}

fn bytes(bytes: impl Into<Bytes>) -> proto::UploadAssetRequest {
    part(Part::Bytes(bytes.into()))
}

fn end(size_bytes: u64) -> proto::UploadAssetRequest {
    part(Part::End(proto::AssetEnd { size_bytes, content_hash: None }))
}

fn reason(status: &Status) -> Reason {
    Problem::from_status(status).reason
}

fn broken(status: &Status) -> String {
    let violations = Problem::from_status(status).violations;
    violations.into_iter().map(|violation| format!("{} {}", violation.path, violation.code)).collect()
}

#[tokio::test]
async fn an_asset_streams_in_and_out() {
    for test in engines().await {
        let mut served = serve(test).await;
        let ask =
            |message: proto::DownloadAssetRequest| served.issuer.request(served.workspace, message).unwrap();
        let chunk = vec![7_u8; 1024 * 1024];
        let sent = stream::iter([draft("a.png")]).chain(stream::iter(vec![bytes(chunk); 12]));
        let sent = sent.chain(stream::iter([end(12 * 1024 * 1024)]));
        let request = served.issuer.request(served.workspace, sent).unwrap();
        let asset = served.assets.upload_asset(request).await.unwrap().into_inner().asset.unwrap();
        assert_eq!((asset.name.as_str(), asset.size_bytes), ("a.png", 12 * 1024 * 1024));
        assert_eq!(asset.workspace_id, served.workspace.to_string());
        assert_eq!(asset.created_by.as_ref().unwrap().kind, "token");

        let whole = proto::DownloadAssetRequest { asset_id: asset.id.clone(), offset: 0, length: None };
        let mut coming = served.assets.download_asset(ask(whole.clone())).await.unwrap().into_inner();
        assert_eq!(coming.message().await.unwrap().unwrap().part, Some(Sent::Asset(asset.clone())));
        let mut hasher = blake3::Hasher::new();
        while let Some(message) = coming.message().await.unwrap() {
            let Some(Sent::Bytes(bytes)) = message.part else { panic!("{message:?}") };
            assert!(bytes.len() <= 64 * 1024, "streamed, not gathered");
            hasher.update(&bytes);
        }
        assert_eq!(format!("blake3:{}", hasher.finalize().to_hex()), asset.content_hash);
        let part = proto::DownloadAssetRequest { offset: 5, length: Some(3), ..whole };
        let coming = served.assets.download_asset(ask(part)).await.unwrap().into_inner();
        let messages: Vec<_> = coming.map(|message| message.unwrap().part.unwrap()).collect().await;
        assert_eq!(messages, [Sent::Asset(asset.clone()), Sent::Bytes(Bytes::from_static(&[7, 7, 7]))]);

        let get = proto::GetAssetRequest { asset_id: asset.id.clone() };
        let got =
            served.assets.get_asset(served.issuer.request(served.workspace, get.clone()).unwrap()).await;
        assert_eq!(got.unwrap().into_inner().asset.unwrap(), asset);
        let delete = proto::DeleteAssetRequest { asset_id: asset.id.clone() };
        served.assets.delete_asset(served.issuer.request(served.workspace, delete).unwrap()).await.unwrap();
        let gone = served.assets.get_asset(served.issuer.request(served.workspace, get).unwrap()).await;
        assert_eq!(reason(&gone.unwrap_err()), Reason::NotFound);
        assert_eq!(served.stored(), 0, "{}", served.test.engine);
    }
}

#[tokio::test]
async fn what_is_no_upload_is_refused_and_leaves_nothing() {
    for test in engines().await {
        let mut served = serve(test).await;
        for (messages, expected) in [
            (vec![], "draft required"),
            (vec![bytes("x"), end(1)], "draft required"),
            (vec![draft("a"), bytes("x")], "end required"),
            (vec![draft("a"), draft("a"), end(0)], "part invalid"),
            (vec![draft("a"), proto::UploadAssetRequest { part: None }], "part invalid"),
            (vec![draft("a"), bytes(vec![0; 5 * 1024 * 1024])], "bytes too_long"),
        ] {
            let request = served.issuer.request(served.workspace, stream::iter(messages)).unwrap();
            let status = served.assets.upload_asset(request).await.unwrap_err();
            assert_eq!(broken(&status), expected, "{status:?}");
        }
        let free = cairn_chassis::identity::Identity {
            plan: Some("free".into()),
            ..served.issuer.token(served.workspace, &Permission::ALL, Scope::All)
        };
        let chunks = stream::iter(vec![bytes(vec![1_u8; 1024 * 1024]); 11]);
        let request = served.issuer.request_as(&free, stream::iter([draft("a")]).chain(chunks)).unwrap();
        let status = served.assets.upload_asset(request).await.unwrap_err();
        assert_eq!(reason(&status), Reason::PayloadTooLarge);
        assert_eq!(served.stored(), 0, "{}", served.test.engine);
    }
}

/// To the service, this looks like a client that was killed.
#[tokio::test]
async fn an_upload_that_is_cut_leaves_nothing() {
    for test in engines().await {
        let served = serve(test).await;
        let taken = Arc::new(tokio::sync::Notify::new());
        let told = Arc::clone(&taken);
        let chunks = stream::iter(vec![bytes(vec![1_u8; 1024 * 1024]); 12]);
        let waits = stream::once(async move {
            told.notify_one();
            std::future::pending().await
        });
        let sent = stream::iter([draft("a")]).chain(chunks).chain(waits);
        let request = served.issuer.request(served.workspace, sent).unwrap();
        let mut assets = served.assets.clone();
        let upload = tokio::spawn(async move { assets.upload_asset(request).await.map(|_| ()) });
        taken.notified().await;
        upload.abort();
        assert!(upload.await.unwrap_err().is_cancelled());
        let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(30);
        while served.stored() > 0 {
            assert!(tokio::time::Instant::now() < deadline, "{}: something stays", served.test.engine);
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        let db = served.test.open(store::SCHEMA, store::MIGRATIONS).await.unwrap();
        assert_eq!(store::assets::list_all(&db, "", "", 1).await.unwrap(), []);
    }
}

#[tokio::test]
async fn assets_are_listed_page_by_page_and_in_their_workspace_only() {
    for test in engines().await {
        let mut served = serve(test).await;
        let mut made = Vec::new();
        for name in ["b", "a", "c"] {
            let sent = stream::iter([draft(name), bytes("x"), end(1)]);
            let request = served.issuer.request(served.workspace, sent).unwrap();
            made.push(served.assets.upload_asset(request).await.unwrap().into_inner().asset.unwrap());
        }
        made.sort_by(|one, other| one.id.cmp(&other.id));
        let mut page_token = String::new();
        let mut listed = Vec::new();
        loop {
            let ask = proto::ListAssetsRequest { page_size: 2, page_token };
            let request = served.issuer.request(served.workspace, ask).unwrap();
            let page = served.assets.list_assets(request).await.unwrap().into_inner();
            assert_eq!(page.total_size, 3, "{}", served.test.engine);
            listed.extend(page.assets);
            page_token = page.next_page_token;
            if page_token.is_empty() {
                break;
            }
        }
        assert_eq!(listed, made, "{}", served.test.engine);
        let request = served.issuer.request(caller(2).workspace, proto::ListAssetsRequest::default());
        let elsewhere = served.assets.list_assets(request.unwrap()).await.unwrap().into_inner();
        assert_eq!((elsewhere.assets.len(), elsewhere.total_size), (0, 0));
    }
}

#[tokio::test]
async fn permissions_and_scopes_are_checked_here() {
    for test in engines().await {
        let mut served = serve(test).await;
        let sent = || stream::iter([draft("a"), bytes("x"), end(1)]);
        let made = served.assets.upload_asset(served.issuer.request(served.workspace, sent()).unwrap()).await;
        let asset_id = made.unwrap().into_inner().asset.unwrap().id;
        let with =
            |permissions: &[Permission]| served.issuer.token(served.workspace, permissions, Scope::All);
        let (reader, writer) = (with(&[Permission::Read]), with(&[Permission::Write]));
        let scope = Scope::Folders([missing_folder()].into());
        let scoped = served.issuer.token(served.workspace, &Permission::ALL, scope);
        let get = proto::GetAssetRequest { asset_id: asset_id.clone() };
        let download = proto::DownloadAssetRequest { asset_id: asset_id.clone(), offset: 0, length: None };
        let delete = proto::DeleteAssetRequest { asset_id };
        macro_rules! refused {
            ($method:ident, $identity:expr, $message:expr, $reason:expr) => {
                let request = served.issuer.request_as($identity, $message).unwrap();
                let status = served.assets.$method(request).await.map(|_| ()).unwrap_err();
                assert_eq!(reason(&status), $reason, "{status:?}");
            };
        }
        refused!(upload_asset, &reader, sent(), Reason::Forbidden);
        refused!(delete_asset, &writer, delete.clone(), Reason::Forbidden);
        refused!(get_asset, &writer, get.clone(), Reason::Forbidden);
        refused!(download_asset, &writer, download.clone(), Reason::Forbidden);
        refused!(upload_asset, &scoped, sent(), Reason::OutOfScope);
        refused!(delete_asset, &scoped, delete, Reason::OutOfScope);
        refused!(get_asset, &scoped, get.clone(), Reason::OutOfScope);
        refused!(list_assets, &writer, proto::ListAssetsRequest::default(), Reason::Forbidden);
        refused!(list_assets, &scoped, proto::ListAssetsRequest::default(), Reason::OutOfScope);
        refused!(download_asset, &scoped, download.clone(), Reason::OutOfScope);
        let anonymous = served.assets.get_asset(get.clone()).await.unwrap_err();
        assert_eq!(reason(&anonymous), Reason::Unauthorized);
        let elsewhere = served.issuer.request(caller(2).workspace, download).unwrap();
        let status = served.assets.download_asset(elsewhere).await.map(|_| ()).unwrap_err();
        assert_eq!(reason(&status), Reason::NotFound);
    }
}
