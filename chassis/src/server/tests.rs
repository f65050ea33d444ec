//! What is decided about a call before it is decoded.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::body::Body;
use axum::routing::post;
use bytes::{BufMut as _, Bytes, BytesMut};
use cairn_proto::content::v1::{BatchItem, BatchWriteRequest};
use cairn_proto::ids::WorkspaceId;
use futures::stream;
use http::Request;
use prost::Message as _;
use tonic::Status;
use tonic::service::Routes;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tower::ServiceExt as _;

use super::*;
use crate::identity::{Permission, Scope};
use crate::status::Reason;
use crate::testing::identity::Issuer;

const BATCH: &str = "/cairn.content.v1.BatchService/BatchWrite";
const GET: &str = "/cairn.content.v1.FileService/GetFile";
const UPLOAD: &str = "/cairn.content.v1.AssetService/UploadAsset";

/// Reads the whole body, as a decoder does, and answers OK or what was wrong with it.
async fn served(access: Access) -> (Routes, Issuer) {
    let issuer = Issuer::new().unwrap();
    let read = |body: Body| async move {
        let read = axum::body::to_bytes(body, usize::MAX).await;
        let status = read.map_or_else(|error| Status::from_error(error.into_inner()), |_| Status::ok(""));
        status.into_http::<Body>()
    };
    let router = Router::new().route(BATCH, post(read)).route(GET, post(read)).route(UPLOAD, post(read));
    let composed = compose(Routes::from(router), &[], &[access], &issuer.ambient().verifier).await.unwrap();
    (composed.routes, issuer)
}

fn framed(messages: &[Vec<u8>]) -> Bytes {
    let mut bytes = BytesMut::new();
    for message in messages {
        bytes.put_u8(0);
        bytes.put_u32(u32::try_from(message.len()).unwrap());
        bytes.put_slice(message);
    }
    bytes.freeze()
}

fn request(issuer: &Issuer, path: &str, body: impl Into<Body>) -> Request<Body> {
    let workspace: WorkspaceId = uuid::Uuid::from_u128(1).to_string().parse().unwrap();
    let identity = issuer.sign(&issuer.token(workspace, &Permission::ALL, Scope::All)).unwrap();
    let request = Request::post(path).header("authorization", format!("Bearer {identity}"));
    request.body(body.into()).unwrap()
}

async fn answer(routes: Routes, request: Request<Body>) -> Result<(), Reason> {
    let response = routes.into_axum_router().oneshot(request).await.unwrap();
    let weight: usize =
        response.headers().iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    assert!(weight <= crate::status::MAX_ERROR_BYTES, "an answer of {weight} bytes");
    let status = Status::from_header_map(response.headers()).unwrap();
    if status.code() == tonic::Code::Ok { Ok(()) } else { Err(Problem::from_status(&status).reason) }
}

#[tokio::test]
async fn nothing_of_a_body_is_read_before_the_identity_is_known() {
    let (routes, issuer) = served(Access { open: &[GET], large: &[] }).await;
    for (authorization, path, expected) in [
        (None, BATCH, Err(Reason::Unauthorized)),
        (Some("Bearer nonsense"), BATCH, Err(Reason::Unauthorized)),
        (None, "/cairn.content.v1.BatchService/Made-up", Err(Reason::Unauthorized)),
        (None, "/made.up/At/All", Err(Reason::Unauthorized)),
        (None, GET, Ok(())),
    ] {
        let was_read = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&was_read);
        let body = Body::from_stream(stream::once(async move {
            seen.store(true, Ordering::Relaxed);
            Ok::<_, Infallible>(framed(&[Vec::new()]))
        }));
        let mut request = request(&issuer, path, body);
        request.headers_mut().remove("authorization");
        if let Some(value) = authorization {
            request.headers_mut().insert("authorization", value.parse().unwrap());
        }
        assert_eq!(answer(routes.clone(), request).await, expected, "{path}");
        assert_eq!(was_read.load(Ordering::Relaxed), expected.is_ok(), "{path}");
    }
}

#[tokio::test]
async fn messages_are_as_large_as_their_method_allows() {
    let message = |bytes: usize| framed(&[vec![0; bytes]]);
    for (access, most) in [
        (Access { open: &[GET], large: &[] }, MAX_OPEN_BYTES),
        (Access::default(), MAX_USUAL_BYTES),
        (Access { open: &[], large: &[GET] }, crate::channel::MAX_MESSAGE_BYTES),
    ] {
        let (routes, issuer) = served(access).await;
        let over = request(&issuer, GET, message(most + 1));
        assert_eq!(answer(routes.clone(), over).await, Err(Reason::PayloadTooLarge), "{most}");
        // One field of bytes that fills the message to the limit.
        let length = most - 5;
        let mut whole = vec![0x0a];
        prost::encode_length_delimiter(length, &mut whole).unwrap();
        whole.resize(whole.len() + length, b'x');
        assert!(whole.len() <= most);
        assert_eq!(answer(routes, request(&issuer, GET, framed(&[whole]))).await, Ok(()), "{most}");
    }
}

#[tokio::test]
async fn a_batch_of_millions_that_says_nothing_is_refused_before_it_is_decoded() {
    let (routes, issuer) = served(Access { open: &[], large: &[BATCH] }).await;
    let batch = |writes: usize| {
        framed(&[BatchWriteRequest { writes: vec![BatchItem::default(); writes] }.encode_to_vec()])
    };
    assert_eq!(answer(routes.clone(), request(&issuer, BATCH, batch(1_000))).await, Ok(()));
    let millions = request(&issuer, BATCH, batch(3_000_000));
    assert_eq!(answer(routes, millions).await, Err(Reason::PayloadTooLarge));
}

#[tokio::test]
async fn only_a_stream_has_several_messages() {
    let (routes, issuer) = served(Access::default()).await;
    let two = || framed(&[Vec::new(), Vec::new()]);
    assert_eq!(answer(routes.clone(), request(&issuer, GET, two())).await, Err(Reason::ValidationError));
    assert_eq!(answer(routes.clone(), request(&issuer, UPLOAD, two())).await, Ok(()));
    let compressed = Bytes::from_static(&[1, 0, 0, 0, 0]);
    assert_eq!(answer(routes, request(&issuer, GET, compressed)).await, Err(Reason::Unimplemented));
}

#[tokio::test]
async fn health_and_reflection_need_no_identity() {
    let (routes, issuer) = served(Access::default()).await;
    let mut request = request(&issuer, "/grpc.health.v1.Health/Check", framed(&[Vec::new()]));
    request.headers_mut().remove("authorization");
    request.headers_mut().insert("content-type", "application/grpc".parse().unwrap());
    let response = routes.into_axum_router().oneshot(request).await.unwrap();
    assert_eq!(response.headers().get("grpc-status"), None, "a good answer has its status at its end");
}

#[tokio::test]
async fn tools_of_both_versions_read_the_contracts() {
    let (routes, issuer) = served(Access::default()).await;
    let all = MessageRequest::ListServices(String::new());
    let asked = ServerReflectionRequest { host: String::new(), message_request: Some(all) };
    for version in ["v1", "v1alpha"] {
        let path = format!("/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo");
        let mut request = request(&issuer, &path, framed(&[asked.encode_to_vec()]));
        request.headers_mut().remove("authorization");
        request.headers_mut().insert("content-type", "application/grpc".parse().unwrap());
        let response = routes.clone().into_axum_router().oneshot(request).await.unwrap();
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        assert!(String::from_utf8_lossy(&body).contains("grpc.health.v1.Health"), "{version}: {body:?}");
    }
}
