//! Every RPC of every service, called directly over gRPC and without an identity token: each service authorizes by
//! itself.

use std::collections::BTreeSet;

use bytes::Bytes;
use cairn_proto::DESCRIPTORS;
use prost::Message as _;
use prost_types::{FileDescriptorSet, MethodDescriptorProto};
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request};
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

use crate::support::mesh::SERVICES;
use crate::support::prelude::*;
use crate::support::raw_codec::RawCodec;

/// The RPCs that answer without an identity token, and their codes: each is a way to get one, or is authorized
/// otherwise.
const OPEN: &[(&str, Code)] = &[
    // The secret is the proof, and an empty one proves nothing.
    ("cairn.auth.v1.TokenService/Exchange", Code::Unauthenticated),
    // Public keys, and identity tokens of services in exchange for the mesh secret.
    ("cairn.auth.v1.KeyService/ListKeys", Code::Ok),
    ("cairn.auth.v1.KeyService/IssueServiceIdentity", Code::Unauthenticated),
    // Public memories.
    ("cairn.content.v1.MemoryService/ExportMemory", Code::NotFound),
];

/// The services that the public gRPC address exposes. A new one is internal until it is listed here.
const PUBLIC: &[&str] = &[
    "cairn.content.v1.AssetService",
    "cairn.content.v1.BatchService",
    "cairn.content.v1.DatabaseService",
    "cairn.content.v1.FileService",
    "cairn.content.v1.FileVersionService",
    "cairn.content.v1.FolderService",
    "cairn.content.v1.MemoryService",
    "cairn.content.v1.OverviewService",
    "cairn.content.v1.RecordService",
    "cairn.content.v1.TrashService",
    "cairn.ingest.v1.IngestService",
    "cairn.ingest.v1.SourceService",
    "cairn.retrieval.v1.AnalyticsService",
    "cairn.retrieval.v1.BrowseService",
    "cairn.retrieval.v1.IndexService",
    "cairn.retrieval.v1.RelatedService",
    "cairn.retrieval.v1.SearchService",
    "cairn.sync.v1.SyncService",
];
const EXCHANGE: &str = "cairn.auth.v1.TokenService/Exchange";

/// Every RPC, at the public address and without an identity token.
pub(super) async fn check_public(deployment: &Deployment) {
    let descriptors = FileDescriptorSet::decode(DESCRIPTORS).unwrap();
    let url = deployment.public_grpc_url();
    let channel = Endpoint::from_shared(url).unwrap().connect().await.unwrap();
    let services = descriptors.file.iter().flat_map(|file| {
        file.service.iter().map(move |one| (format!("{}.{}", file.package(), one.name()), one))
    });
    let mut wrong = Vec::new();
    for (name, service) in services {
        for method in &service.method {
            let full = format!("{name}/{}", method.name());
            let is_public = full == EXCHANGE || PUBLIC.contains(&name.as_str());
            let open = OPEN.iter().find(|(open, _)| *open == full).map(|(_, code)| *code);
            let expected =
                if is_public { open.unwrap_or(Code::Unauthenticated) } else { Code::Unimplemented };
            let code = call(channel.clone(), &full).await;
            if code != expected {
                wrong.push(format!("{full}: {code:?}, not {expected:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "at the public address: {wrong:#?}");
    for inside in ["grpc.health.v1.Health/Check", "grpc.reflection.v1.ServerReflection/ServerReflectionInfo"]
    {
        assert_eq!(call(channel.clone(), inside).await, Code::Unimplemented, "{inside}");
    }
}

pub(super) async fn check(deployment: &Deployment) {
    let descriptors = FileDescriptorSet::decode(DESCRIPTORS).unwrap();
    let (mut met, mut wrong) = (BTreeSet::new(), Vec::new());
    for service in SERVICES {
        let channel = Endpoint::from_shared(deployment.grpc_url(service)).unwrap().connect().await.unwrap();
        for name in served(channel.clone()).await {
            let methods = methods_of(&descriptors, &name);
            assert!(!methods.is_empty(), "{service} serves {name}, which has no contract");
            for method in methods {
                let full = format!("{name}/{}", method.name());
                let expected = OPEN
                    .iter()
                    .find(|(open, _)| *open == full)
                    .map_or(Code::Unauthenticated, |(_, code)| *code);
                let code = call(channel.clone(), &full).await;
                if code != expected {
                    wrong.push(format!("{full}: {code:?}, not {expected:?}"));
                }
                met.insert(full);
            }
        }
    }
    assert!(wrong.is_empty(), "without an identity: {wrong:#?}");
    let gone: Vec<_> = OPEN.iter().filter(|(open, _)| !met.contains(*open)).collect();
    assert!(gone.is_empty(), "in the list, and not served: {gone:?}");
}

/// Our services at an address.
async fn served(channel: Channel) -> Vec<String> {
    let ask = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    let mut client = ServerReflectionClient::new(channel);
    let mut answers = client.server_reflection_info(tokio_stream::once(ask)).await.unwrap().into_inner();
    let answer = answers.message().await.unwrap().unwrap();
    let Some(MessageResponse::ListServicesResponse(list)) = answer.message_response else {
        panic!("no list of services");
    };
    let names = list.service.into_iter().map(|one| one.name);
    names.filter(|name| name.starts_with("cairn.")).collect()
}

fn methods_of<'a>(descriptors: &'a FileDescriptorSet, service: &str) -> Vec<&'a MethodDescriptorProto> {
    let services = descriptors.file.iter().flat_map(|file| {
        file.service.iter().map(move |one| (format!("{}.{}", file.package(), one.name()), one))
    });
    services.filter(|(name, _)| name == service).flat_map(|(_, one)| &one.method).collect()
}

/// Calls with an empty message. A stream may fail at its start or at its first message.
async fn call(channel: Channel, method: &str) -> Code {
    let mut grpc = Grpc::new(channel);
    grpc.ready().await.unwrap();
    let path: PathAndQuery = format!("/{method}").parse().unwrap();
    let mut request = Request::new(Bytes::new());
    request.set_timeout(LIMIT);
    let answered = match grpc.server_streaming(request, path, RawCodec).await {
        Ok(response) => response.into_inner().message().await.map(drop),
        Err(status) => Err(status),
    };
    answered.map_or_else(|status| status.code(), |()| Code::Ok)
}
