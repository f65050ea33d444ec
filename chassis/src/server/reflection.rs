//! gRPC reflection, built at its first use: it takes 1.6 MiB for each service of a process and is rarely used.

use std::convert::Infallible;
use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use axum::routing;
use tonic::Status;
use tonic::service::Routes;
use tonic_reflection::server::{Builder, Error};
use tower::ServiceExt as _;

use crate::status::Problem;

/// Both versions: Python's grpcio-reflection supports only the older one.
const PATHS: [&str; 2] =
    ["/grpc.reflection.v1.ServerReflection/{*rest}", "/grpc.reflection.v1alpha.ServerReflection/{*rest}"];

/// The routes of the reflection service for the gRPC services of these names.
pub(super) fn routes(names: &[&'static str]) -> Router {
    let names: Arc<[&'static str]> = names.into();
    let cached: Arc<OnceLock<Option<Router>>> = Arc::default();
    let handler = move |request: Request| {
        let router = cached.get_or_init(|| build_or_log(&names)).clone();
        respond(router, request)
    };
    PATHS.into_iter().fold(Router::new(), |router, path| router.route(path, routing::any(handler.clone())))
}

async fn respond(router: Option<Router>, request: Request) -> Response {
    match router {
        Some(router) => router.oneshot(request).await.unwrap_or_else(|never: Infallible| match never {}),
        None => Status::from(Problem::internal("there is no reflection")).into_http::<Body>(),
    }
}

fn build_or_log(names: &[&'static str]) -> Option<Router> {
    build(names)
        .inspect_err(|error| tracing::error!(%error, "the reflection service cannot read the contracts"))
        .ok()
}

fn build(names: &[&'static str]) -> Result<Router, Error> {
    let routes = Routes::default()
        .add_service(builder(names).build_v1()?)
        .add_service(builder(names).build_v1alpha()?);
    Ok(routes.into_axum_router())
}

fn builder(names: &[&'static str]) -> Builder<'static> {
    let mut builder = Builder::configure()
        .register_encoded_file_descriptor_set(cairn_proto::DESCRIPTORS)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .with_service_name("grpc.health.v1.Health")
        .with_service_name("grpc.reflection.v1.ServerReflection");
    for name in names {
        builder = builder.with_service_name(*name);
    }
    builder
}
