//! Qdrant's methods, as far as the engine calls them, over one connection that is made when it is needed.
//!
//! The stubs are those of `qdrant-client`. Its own client is not used: it trusts the machine's certificate authorities and no
//! others.

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

/// The header of the key.
const API_KEY: &str = "api-key";
/// What stands in a file of certificates.
const PEM: &str = "-----BEGIN CERTIFICATE-----";

type Wire = InterceptedService<Channel, Key>;

/// Qdrant's methods; cheap to clone.
#[derive(Clone)]
pub(super) struct Api {
    root: QdrantClient<Wire>,
    collections: CollectionsClient<Wire>,
    points: PointsClient<Wire>,
}

/// Puts the key into every call.
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
    /// Reads the certificate authorities; nothing is contacted. Within a runtime.
    pub(super) fn new(config: &Config) -> Result<Self, crate::Error> {
        config.check()?;
        let (channel, key) = (channel(config)?, key(config)?);
        let root = QdrantClient::with_interceptor(channel.clone(), key.clone());
        let collections = CollectionsClient::with_interceptor(channel.clone(), key.clone());
        let points = PointsClient::with_interceptor(channel, key);
        // What is asked for decides how large an answer may be.
        Ok(Self { root, collections, points: points.max_decoding_message_size(usize::MAX) })
    }

    pub(super) async fn health_check(&self) -> Result<HealthCheckReply, Status> {
        self.health(HealthCheckRequest {}).await
    }

    pub(super) async fn collection_exists(&self, name: &str) -> Result<bool, Status> {
        let asked = CollectionExistsRequest { collection_name: name.to_owned() };
        let answer = self.exists(asked).await?;
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
        let asked = DeleteCollection { collection_name: name.into(), ..DeleteCollection::default() };
        self.delete(asked).await
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
    ($($visibility:vis $name:ident = $service:ident.$method:ident($asked:ty) -> $answer:ty;)+) => {
        impl Api {
            $($visibility async fn $name(&self, asked: $asked) -> Result<$answer, Status> {
                let call = |asked: $asked| {
                    let mut service = self.$service.clone();
                    async move { service.$method(asked).await }
                };
                // A stub's future takes 20 kB, which whoever awaits it would hold as well.
                Box::pin(in_time(twice(asked, call))).await
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

async fn in_time<T>(call: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
    match timeout(CALL_TIMEOUT, call).await {
        Ok(answered) => answered,
        Err(_elapsed) => Err(Status::deadline_exceeded("it takes too long to answer")),
    }
}

/// Once more where the connection broke: every call may be repeated with the same end (ADR 15).
async fn twice<A: Clone, B, F>(asked: A, call: impl Fn(A) -> F) -> Result<B, Status>
where
    F: Future<Output = Result<Response<B>, Status>>,
{
    match call(asked.clone()).await {
        Err(status) if is_broken(&status) => call(asked).await.map(Response::into_inner),
        answered => answered.map(Response::into_inner),
    }
}

/// Whether the connection is the reason, and not what Qdrant says.
fn is_broken(status: &Status) -> bool {
    let is_of_transport =
        matches!(status.code(), Code::Unavailable | Code::Unknown | Code::Internal | Code::Cancelled);
    is_of_transport && status.source().is_some()
}

/// What a status says, with what lies behind it: that a certificate is not trusted, say.
pub(super) fn reason(status: &Status) -> String {
    let mut reason = status.message().to_owned();
    let mut cause = status.source();
    while let Some(behind) = cause {
        let told = behind.to_string();
        if !reason.contains(&told) {
            reason.push_str(": ");
            reason.push_str(&told);
        }
        cause = behind.source();
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

/// The key as a header that nothing shows.
fn key(config: &Config) -> Result<Key, crate::Error> {
    let Some(key) = &config.api_key else { return Ok(Key(None)) };
    // Without what is wrong, which has the key in it.
    let mut value: MetadataValue<Ascii> =
        key.parse().map_err(|_| unusable("the API key has characters that no header may have"))?;
    value.set_sensitive(true);
    Ok(Key(Some(value)))
}
