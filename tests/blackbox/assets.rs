//! Assets: uploaded over gRPC, referenced by records, downloaded by people (spec 2.5, 4.10).

use bytes::Bytes;
use cairn_proto::auth::v1::ExchangeRequest;
use cairn_proto::auth::v1::token_service_client::TokenServiceClient;
use cairn_proto::content::v1::asset_service_client::AssetServiceClient;
use cairn_proto::content::v1::upload_asset_request::Part;
use cairn_proto::content::v1::{
    Asset, AssetDraft, AssetEnd, DeleteAssetRequest, GetAssetRequest, UploadAssetRequest,
};
use futures::StreamExt as _;
use reqwest::Method;
use tonic::transport::Channel;
use tonic::{Code, Status};

use crate::doctor::assert_sound;
use crate::grpc::{as_caller, connect, exchange, refused};
use crate::support::callers::ApiToken;
use crate::support::http::{Reply, each, id, text};
use crate::support::prelude::*;
use crate::support::runner::run_alone;
use crate::support::scratch::Scratch;
use crate::support::single::SingleProcess;

scenarios![
    an_uploaded_asset_is_read_by_people_of_its_workspace,
    an_asset_runs_nothing_in_a_browser,
    a_record_names_an_asset,
    a_folder_scope_sees_what_its_records_name,
    the_plan_limits_an_asset,
];

const CHUNK: usize = 256 * 1024;

fn part(part: Part) -> UploadAssetRequest {
    UploadAssetRequest { part: Some(part) }
}

pub(crate) fn messages(name: &str, media_type: &str, bytes: &[u8]) -> Vec<UploadAssetRequest> {
    let draft =
        AssetDraft { name: name.into(), media_type: media_type.into(), size_bytes: None, new_id: None };
    let chunks = bytes.chunks(CHUNK).map(|chunk| part(Part::Bytes(Bytes::copy_from_slice(chunk))));
    let content_hash = Some(format!("blake3:{}", blake3::hash(bytes).to_hex()));
    let end = AssetEnd { size_bytes: bytes.len() as u64, content_hash };
    [part(Part::Draft(draft))].into_iter().chain(chunks).chain([part(Part::End(end))]).collect()
}

pub(crate) async fn send(
    channel: Channel,
    identity: &str,
    messages: Vec<UploadAssetRequest>,
) -> Result<Asset, Status> {
    let stream = futures::stream::iter(messages);
    let answer = AssetServiceClient::new(channel).upload_asset(as_caller(identity, stream)).await?;
    Ok(answer.into_inner().asset.unwrap())
}

pub(crate) async fn upload(
    deployment: &Deployment,
    token: &ApiToken,
    name: &str,
    media_type: &str,
    bytes: &[u8],
) -> Asset {
    let identity = exchange(deployment, token).await;
    send(connect(deployment, "content").await, &identity, messages(name, media_type, bytes)).await.unwrap()
}

fn content_of(asset: &Asset) -> String {
    format!("/api/assets/{}/content", asset.id)
}

/// Bytes without repetition.
pub(crate) fn noise(length: usize) -> Vec<u8> {
    (0..length).map(|place| u8::try_from(place % 251).unwrap()).collect()
}

async fn an_uploaded_asset_is_read_by_people_of_its_workspace(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let bytes = noise(6 * 1024 * 1024 + 17);
    let asset = upload(deployment, &workspace.token, "plan.png", "image/png", &bytes).await;
    assert_eq!(asset.workspace_id, workspace.id);
    let path = content_of(&asset);
    let read = workspace.session.get(&path).await.expect(200);
    assert!(read.body == bytes, "other bytes came back");
    let by_program = workspace.token.get(&path.replace("/api/", "/api/v1/")).await.expect(200);
    assert!(by_program.body == bytes, "other bytes came back");
    let shown = by_program.header("content-disposition").unwrap();
    assert!(shown.starts_with("attachment; filename=\"plan.png\""), "{shown}");
    let listed = workspace.token.get("/api/v1/assets").await.expect(200);
    assert_eq!(each(&listed.json(), "contentHash"), [asset.content_hash.as_str()]);
    assert_eq!(listed.header("x-total-count"), Some("1"));
    let etag = format!("\"{}\"", asset.content_hash);
    for (name, value) in [
        ("content-type", "image/png"),
        ("content-length", &bytes.len().to_string()),
        ("etag", &etag),
        ("accept-ranges", "bytes"),
        ("cache-control", "private, no-cache"),
        ("content-disposition", "inline; filename=\"plan.png\"; filename*=UTF-8''plan.png"),
    ] {
        assert_eq!(read.header(name), Some(value), "{name}");
    }
    let get = |name: &'static str, value: &str| workspace.session.get(&path).header(name, value);
    let known = get("if-none-match", &etag).await.expect(304);
    assert!(known.body.is_empty() && known.header("etag") == Some(&etag));
    let some = get("range", "bytes=5242870-5242889").await.expect(206);
    assert_eq!(some.header("content-range"), Some(format!("bytes 5242870-5242889/{}", bytes.len()).as_str()));
    assert!(some.body == bytes[5_242_870..5_242_890], "other bytes than those of the range");
    let beyond = get("range", "bytes=99999999-").await;
    assert_eq!((beyond.status, beyond.header("content-range")), (416, Some("bytes */6291473")));
    let head = workspace.session.request(Method::HEAD, &path).await.expect(200);
    assert_eq!((head.header("content-length"), head.body.len()), (Some("6291473"), 0));

    deployment.anonymous().get(&path).await.expect_error(401, "UNAUTHORIZED");
    workspace.token.get(&path).await.expect_error(401, "UNAUTHORIZED");
    let here = format!("{path}?workspaceId={}", workspace.id);
    workspace.session.get(&here).await.expect(200);
    let other = deployment.workspace().await;
    let elsewhere = format!("{path}?workspaceId={}", other.id);
    workspace.session.get(&elsewhere).await.expect_error(404, "NOT_FOUND");
    let identity = exchange(deployment, &other.token).await;
    let mut assets = AssetServiceClient::new(connect(deployment, "content").await);
    let get = GetAssetRequest { asset_id: asset.id.clone() };
    refused(assets.get_asset(as_caller(&identity, get)).await.unwrap_err(), Code::NotFound, "NOT_FOUND");

    let identity = exchange(deployment, &workspace.token).await;
    let delete = DeleteAssetRequest { asset_id: asset.id.clone() };
    assets.delete_asset(as_caller(&identity, delete)).await.unwrap();
    workspace.session.get(&path).await.expect_error(404, "NOT_FOUND");
    let nonsense = workspace.session.get("/api/assets/nonsense/content").await;
    nonsense.expect_error(404, "NOT_FOUND");
}

async fn an_asset_runs_nothing_in_a_browser(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let page = b"<script>alert(1)</script>";
    for (media_type, name) in [("text/html", "a.html"), ("image/svg+xml", "a.svg"), ("", "a")] {
        let asset = upload(deployment, &workspace.token, name, media_type, page).await;
        let read = workspace.session.get(&content_of(&asset)).await.expect(200);
        let header = |name: &str| read.header(name).unwrap_or_default().to_owned();
        assert!(header("content-disposition").starts_with("attachment;"), "{media_type}");
        assert_eq!(header("x-content-type-options"), "nosniff");
        assert!(header("content-security-policy").contains("default-src 'none'"), "{media_type}");
        assert!(header("content-security-policy").ends_with("; sandbox"), "{media_type}");
        assert_eq!(header("cross-origin-resource-policy"), "same-origin");
    }
}

/// A database with one asset property.
async fn asset_database(workspace: &Workspace, folder: Option<&str>) -> (String, String) {
    let body = json!({"name": "Shelf", "folderId": folder});
    let made = workspace.token.post("/api/v1/databases").json(body).await.expect(201).json();
    let path = format!("/api/v1/databases/{}", id(&made));
    let field = json!({"name": "Scan", "type": "asset_reference"});
    let field = workspace.token.post(&format!("{path}/fields")).json(field).await.expect(201).json();
    (format!("{path}/records"), id(&field))
}

async fn name(caller: &ApiToken, records: &str, field: &str, asset: &str) -> Reply {
    caller.post(records).json(json!({"values": {field: asset}})).await
}

async fn a_record_names_an_asset(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let (records, field) = asset_database(&workspace, None).await;
    let asset = upload(deployment, &workspace.token, "a.pdf", "application/pdf", b"%PDF").await;
    let made = name(&workspace.token, &records, &field, &asset.id).await.expect(201).json();
    assert_eq!(text(&made["values"], &field), asset.id);
    let other = deployment.workspace().await;
    let foreign = upload(deployment, &other.token, "a.pdf", "application/pdf", b"%PDF").await;
    for unknown in [foreign.id.as_str(), "0199c0de-0000-7000-8000-000000000001"] {
        let refused = name(&workspace.token, &records, &field, unknown).await;
        let body = refused.expect_error(400, "VALIDATION_ERROR");
        assert_eq!(text(&body["errors"][0], "path"), format!("values.{field}"));
    }
}

async fn a_folder_scope_sees_what_its_records_name(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let inside = workspace.folder("inside", None).await;
    let scoped = workspace.token_for(&[&inside]).await;
    let (records, field) = asset_database(&workspace, Some(&inside)).await;
    let named = upload(deployment, &workspace.token, "a", "", b"named").await;
    let unnamed = upload(deployment, &workspace.token, "b", "", b"unnamed").await;
    name(&workspace.token, &records, &field, &named.id).await.expect(201);
    let identity = exchange(deployment, &scoped).await;
    let channel = connect(deployment, "content").await;
    let mut assets = AssetServiceClient::new(channel.clone());
    let get = |asset: &Asset| as_caller(&identity, GetAssetRequest { asset_id: asset.id.clone() });
    assert_eq!(assets.get_asset(get(&named)).await.unwrap().into_inner().asset.unwrap(), named);
    let hidden = assets.get_asset(get(&unnamed)).await.unwrap_err();
    refused(hidden, Code::PermissionDenied, "OUT_OF_SCOPE");
    let content = |asset: &Asset| format!("/api/v1/assets/{}/content", asset.id);
    assert_eq!(scoped.get(&content(&named)).await.expect(200).body, b"named".as_slice());
    scoped.get(&content(&unnamed)).await.expect_error(403, "OUT_OF_SCOPE");
    scoped.get("/api/v1/assets").await.expect_error(403, "OUT_OF_SCOPE");
    name(&scoped, &records, &field, &unnamed.id).await.expect_error(403, "OUT_OF_SCOPE");
    name(&scoped, &records, &field, &named.id).await.expect(201);
    let sent = send(channel, &identity, messages("c", "", b"x")).await.unwrap_err();
    refused(sent, Code::PermissionDenied, "OUT_OF_SCOPE");
}

async fn the_plan_limits_an_asset(deployment: &Deployment) {
    const FREE: usize = 10 * 1024 * 1024;
    let workspace = deployment.workspace().await;
    let path = format!("/api/workspaces/{}", workspace.id);
    workspace.session.patch(&path).json(json!({"plan": "free"})).await.expect(200);
    // The identity token carries the plan.
    let identity = exchange(deployment, &workspace.token).await;
    let channel = connect(deployment, "content").await;
    let bytes = noise(FREE + 1);
    let larger = send(channel.clone(), &identity, messages("a", "", &bytes)).await.unwrap_err();
    refused(larger, Code::ResourceExhausted, "PAYLOAD_TOO_LARGE");
    send(channel, &identity, messages("a", "", &bytes[..FREE])).await.unwrap();
}

/// Every file below the asset folder.
fn stored(data: &Scratch) -> Vec<String> {
    let Ok(workspaces) = std::fs::read_dir(data.path().join("assets")) else { return Vec::new() };
    let files = workspaces.flat_map(|workspace| std::fs::read_dir(workspace.unwrap().path()).unwrap());
    files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn an_upload_that_is_killed_leaves_no_asset() {
    run_alone(async {
        let data = Scratch::new();
        let mut up = SingleProcess::start_on(data.path(), &[]).await;
        let (channel, identity) = entry(&up).await;
        let begun = messages("a", "", &noise(12 * 1024 * 1024));
        // Everything but the last message, which is never sent.
        let count = begun.len() - 1;
        let endless = futures::stream::iter(begun).take(count).chain(futures::stream::pending());
        let sending = tokio::spawn(async move {
            AssetServiceClient::new(channel).upload_asset(as_caller(&identity, endless)).await.map(|_| ())
        });
        eventually("the upload is under way", async || (!stored(&data).is_empty()).then_some(())).await;
        up.kill();
        assert!(sending.await.unwrap().is_err());
        assert!(stored(&data).iter().all(|name| name.contains('#')), "{:?}", stored(&data));
        assert_sound(data.path()).await;

        let up = SingleProcess::start_on(data.path(), &[]).await;
        let (channel, identity) = entry(&up).await;
        let again = send(channel, &identity, messages("a", "", &noise(12 * 1024 * 1024))).await.unwrap();
        assert_eq!(again.size_bytes, 12 * 1024 * 1024);
        assert_sound(data.path()).await;
    });
}

pub(crate) async fn entry(up: &SingleProcess) -> (Channel, String) {
    let channel = Channel::from_shared(up.grpc_url()).unwrap().connect().await.unwrap();
    let request = ExchangeRequest { api_token: up.owner().token.clone() };
    let exchanged = TokenServiceClient::new(channel.clone()).exchange(request).await.unwrap();
    (channel, exchanged.into_inner().identity)
}
