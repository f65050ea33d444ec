//! Memory that a single gRPC call may cost a service, measured by the service's own peak memory.

use futures::future::join_all;
use prost::bytes::Bytes;
use tonic::client::Grpc;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

use crate::grpc::{as_caller, connect, exchange, refused};
use crate::support::deployment::Topology;
use crate::support::prelude::*;
use crate::support::raw_codec::RawCodec;
use crate::support::runner::{announce_skip, run_alone};

const BATCH: &str = "/cairn.content.v1.BatchService/BatchWrite";
const EXCHANGE: &str = "/cairn.auth.v1.TokenService/Exchange";
/// Below the largest message that any method accepts.
const LARGE: usize = 31 * 1024 * 1024;
/// The growth of a service's peak: a single decoded message of that size would take hundreds of megabytes.
const MAX_GROWTH: u64 = 64 * 1024 * 1024;
/// The maximum size of a call's trailers.
const MAX_ERROR_BYTES: usize = 8 * 1024;

async fn call(channel: Channel, path: &'static str, request: Request<Bytes>) -> Result<Bytes, Status> {
    let mut grpc = Grpc::new(channel);
    grpc.ready().await.unwrap();
    grpc.unary(request, path.parse().unwrap(), RawCodec).await.map(tonic::Response::into_inner)
}

/// A list of empty entries: field 1 with length 0, repeated.
fn empty_entries(bytes: usize) -> Bytes {
    [0x0a, 0x00].repeat(bytes / 2).into()
}

/// Checks that the peak has hardly grown, where the OS reports it.
fn assert_low_growth(before: Option<u64>, after: Option<u64>) {
    let grown = after.unwrap_or_default().saturating_sub(before.unwrap_or_default());
    assert!(grown < MAX_GROWTH, "the peak has grown by {grown} bytes");
}

async fn each_deployment(test: impl AsyncFn(&Deployment)) {
    for topology in [Topology::SingleProcess, Topology::Mesh] {
        match Deployment::start(topology).await {
            Ok(deployment) => test(&deployment).await,
            Err(why) => announce_skip(&why),
        }
    }
}

#[test]
fn a_large_message_without_an_identity_is_not_read() {
    run_alone(each_deployment(async |deployment| {
        let channel = connect(deployment, "content").await;
        let before = deployment.peak_memory("content");
        let sent = empty_entries(LARGE);
        let calls = (0..4).map(|_| call(channel.clone(), BATCH, Request::new(sent.clone())));
        for answered in join_all(calls).await {
            refused(answered.unwrap_err(), Code::Unauthenticated, "UNAUTHORIZED");
        }
        let forged = as_caller("nonsense", sent);
        refused(call(channel, BATCH, forged).await.unwrap_err(), Code::Unauthenticated, "UNAUTHORIZED");
        assert_low_growth(before, deployment.peak_memory("content"));
    }));
}

#[test]
fn a_batch_of_millions_that_says_nothing_is_refused_in_few_words() {
    run_alone(each_deployment(async |deployment| {
        let workspace = deployment.workspace().await;
        let identity = exchange(deployment, &workspace.token).await;
        let channel = connect(deployment, "content").await;
        let before = deployment.peak_memory("content");
        for bytes in [LARGE, 4_000] {
            let sent = as_caller(&identity, empty_entries(bytes));
            let status = call(channel.clone(), BATCH, sent).await.unwrap_err();
            let weight = status.details().len() * 4 / 3 + status.message().len();
            assert!(weight < MAX_ERROR_BYTES, "an error of {weight} bytes");
            match bytes {
                LARGE => refused(status, Code::ResourceExhausted, "PAYLOAD_TOO_LARGE"),
                _ => refused(status, Code::InvalidArgument, "VALIDATION_ERROR"),
            }
        }
        assert_low_growth(before, deployment.peak_memory("content"));
    }));
}

#[test]
fn what_anybody_may_call_takes_little() {
    run_alone(each_deployment(async |deployment| {
        let channel = connect(deployment, "auth").await;
        let before = deployment.peak_memory("auth");
        let sent = || Request::new(empty_entries(LARGE));
        let calls = (0..4).map(|_| call(channel.clone(), EXCHANGE, sent()));
        for answered in join_all(calls).await {
            let code = answered.unwrap_err().code();
            // In a single process the gateway serves gRPC, and tonic reports it.
            assert!(matches!(code, Code::ResourceExhausted | Code::OutOfRange), "{code}");
        }
        assert_low_growth(before, deployment.peak_memory("auth"));
    }));
}
