//! The gRPC methods of Qdrant that the engine uses, over one lazily established connection.
//!
//! Uses the stubs of `qdrant-client`, but not its client, which trusts only the system's certificate authorities.

use std::error::Error as _;
use std::future::Future;

use qdrant_client::qdrant::alias_operations::Action;
use qdrant_client::qdrant::collections_client::CollectionsClient;
use qdrant_client::qdrant::points_client::PointsClient;
use qdrant_client::qdrant::qdrant_client::QdrantClient;
use qdrant_client::qdrant::{
    AliasOperations, ChangeAliases, CollectionExistsRequest, CollectionOperationResponse, CountPoints,
    CountResponse, CreateAlias, CreateCollection, CreateFieldIndexCollection, DeleteCollection, FacetCounts,
    FacetResponse, GetCollectionInfoRequest, GetCollectionInfoResponse, GetPoints, GetResponse,
    HealthCheckReply, HealthCheckRequest, ListCollectionsRequest, ListCollectionsResponse,
    PointsOperationResponse, QueryBatchPoints, QueryBatchResponse, QueryPoints, QueryResponse, ScrollPoints,
    ScrollResponse, UpdateBatchPoints, UpdateBatchResponse,
};
use tokio::time::timeout;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Code, Request, Response, Status};

use super::Config;
use super::tuning::{CALL_TIMEOUT, CONNECT_TIMEOUT, KEEP_ALIVE_INTERVAL, KEEP_ALIVE_TIMEOUT};
use crate::qdrant::config::unusable;

/// The header of the API key.
const API_KEY: &str = "api-key";
/// Every PEM file of certificates contains this.
const PEM: &str = "-----BEGIN CERTIFICATE-----";

type Wire = InterceptedService<Channel, Key>;

/// A client for the methods of Qdrant; cheap to clone.
#[derive(Clone)]
pub(super) struct Api {
    root: QdrantClient<Wire>,
    collections: CollectionsClient<Wire>,
    points: PointsClient<Wire>,
}

/// Adds the API key to every call.
#[derive(Clone)]
struct Key(Option<MetadataValue<Ascii>>);

impl Interceptor for Key {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(key) = &self.0 {
            request.metadata_mut().insert(API_KEY, key.clone());
        }
        Ok(request)
    }
}

impl Api {
    /// Reads the certificate authorities; does not connect. Must be called within a runtime.
    pub(super) fn new(config: &Config) -> Result<Self, crate::Error> {
        config.check()?;
        let (channel, key) = (channel(config)?, key(config)?);
        let root = QdrantClient::with_interceptor(channel.clone(), key.clone());
        let collections = CollectionsClient::with_interceptor(channel.clone(), key.clone());
        let points = PointsClient::with_interceptor(channel, key);
        // The limits of the requests bound the size of responses.
        Ok(Self { root, collections, points: points.max_decoding_message_size(usize::MAX) })
    }

    pub(super) async fn health_check(&self) -> Result<HealthCheckReply, Status> {
        self.health(HealthCheckRequest {}).await
    }

    pub(super) async fn collection_exists(&self, name: &str) -> Result<bool, Status> {
        let request = CollectionExistsRequest { collection_name: name.to_owned() };
        let answer = self.exists(request).await?;
        Ok(answer.result.is_some_and(|result| result.exists))
    }

    pub(super) async fn collection_info(&self, name: &str) -> Result<GetCollectionInfoResponse, Status> {
        self.info(GetCollectionInfoRequest { collection_name: name.to_owned() }).await
    }

    pub(super) async fn list_collections(&self) -> Result<ListCollectionsResponse, Status> {
        self.list(ListCollectionsRequest {}).await
    }

    pub(super) async fn delete_collection(
        &self,
        name: impl Into<String>,
    ) -> Result<CollectionOperationResponse, Status> {
        let request = DeleteCollection { collection_name: name.into(), ..DeleteCollection::default() };
        self.delete(request).await
    }

    pub(super) async fn create_alias(
        &self,
        alias: CreateAlias,
    ) -> Result<CollectionOperationResponse, Status> {
        let actions = vec![AliasOperations { action: Some(Action::CreateAlias(alias)) }];
        self.update_aliases(ChangeAliases { actions, ..ChangeAliases::default() }).await
    }
}

macro_rules! methods {
    ($($visibility:vis $name:ident = $service:ident.$method:ident($request:ty) -> $answer:ty;)+) => {
        impl Api {
            $($visibility async fn $name(&self, request: $request) -> Result<$answer, Status> {
                let call = |request: $request| {
                    let mut service = self.$service.clone();
                    async move { service.$method(request).await }
                };
                // Boxed: a stub's future takes 20 kB, which would be part of every caller's future.
                Box::pin(with_timeout(with_retry(request, call))).await
            })+
        }
    };
}

methods! {
    health = root.health_check(HealthCheckRequest) -> HealthCheckReply;
    exists = collections.collection_exists(CollectionExistsRequest) -> qdrant_client::qdrant::CollectionExistsResponse;
    info = collections.get(GetCollectionInfoRequest) -> GetCollectionInfoResponse;
    list = collections.list(ListCollectionsRequest) -> ListCollectionsResponse;
    delete = collections.delete(DeleteCollection) -> CollectionOperationResponse;
    update_aliases = collections.update_aliases(ChangeAliases) -> CollectionOperationResponse;
    pub(super) create_collection = collections.create(CreateCollection) -> CollectionOperationResponse;
    pub(super) create_field_index = points.create_field_index(CreateFieldIndexCollection) -> PointsOperationResponse;
    pub(super) update_points_batch = points.update_batch(UpdateBatchPoints) -> UpdateBatchResponse;
    pub(super) get_points = points.get(GetPoints) -> GetResponse;
    pub(super) scroll = points.scroll(ScrollPoints) -> ScrollResponse;
    pub(super) count = points.count(CountPoints) -> CountResponse;
    pub(super) facet = points.facet(FacetCounts) -> FacetResponse;
    pub(super) query = points.query(QueryPoints) -> QueryResponse;
    pub(super) query_batch = points.query_batch(QueryBatchPoints) -> QueryBatchResponse;
}

async fn with_timeout<T>(call: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
    match timeout(CALL_TIMEOUT, call).await {
        Ok(response) => response,
        Err(_elapsed) => Err(Status::deadline_exceeded("it takes too long to answer")),
    }
}

/// Retries once when the connection broke: every call is idempotent (ADR 15).
async fn with_retry<A: Clone, B, F>(request: A, call: impl Fn(A) -> F) -> Result<B, Status>
where
    F: Future<Output = Result<Response<B>, Status>>,
{
    match call(request.clone()).await {
        Err(status) if is_broken(&status) => call(request).await.map(Response::into_inner),
        response => response.map(Response::into_inner),
    }
}

/// Whether the connection failed, as opposed to an error that Qdrant returned.
fn is_broken(status: &Status) -> bool {
    let is_of_transport =
        matches!(status.code(), Code::Unavailable | Code::Unknown | Code::Internal | Code::Cancelled);
    is_of_transport && status.source().is_some()
}

/// The message of a status with its causes, such as an untrusted certificate.
pub(super) fn reason(status: &Status) -> String {
    let mut reason = status.message().to_owned();
    let mut cause = status.source();
    while let Some(error) = cause {
        let message = error.to_string();
        if !reason.contains(&message) {
            reason.push_str(": ");
            reason.push_str(&message);
        }
        cause = error.source();
    }
    reason
}

fn channel(config: &Config) -> Result<Channel, crate::Error> {
    let no_address = |_| unusable("its address is none");
    let endpoint = Endpoint::from_shared(config.url.clone()).map_err(no_address)?;
    let mut endpoint = endpoint
        .connect_timeout(CONNECT_TIMEOUT)
        .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
        .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
        .keep_alive_while_idle(true);
    if config.is_encrypted() {
        let no_tls = |error: tonic::transport::Error| {
            let reason = error.source().map_or_else(|| error.to_string(), ToString::to_string);
            unusable(&format!("TLS: {reason}"))
        };
        endpoint = endpoint.tls_config(trusting(config)?).map_err(no_tls)?;
    }
    Ok(endpoint.connect_lazy())
}

fn trusting(config: &Config) -> Result<ClientTlsConfig, crate::Error> {
    let Some(path) = &config.ca else { return Ok(ClientTlsConfig::new().with_native_roots()) };
    let authorities = fs_err::read_to_string(path)
        .map_err(|error| unusable(&format!("its certificate authorities: {error}")))?;
    if !authorities.contains(PEM) {
        let why = format!("{} holds no certificate in PEM form ({PEM})", path.display());
        return Err(unusable(&why));
    }
    Ok(ClientTlsConfig::new().ca_certificate(Certificate::from_pem(authorities)))
}

/// The API key as a sensitive header value.
fn key(config: &Config) -> Result<Key, crate::Error> {
    let Some(key) = &config.api_key else { return Ok(Key(None)) };
    // Without the parse error, which contains the key.
    let mut value: MetadataValue<Ascii> =
        key.parse().map_err(|_| unusable("the API key has characters that no header may have"))?;
    value.set_sensitive(true);
    Ok(Key(Some(value)))
}
