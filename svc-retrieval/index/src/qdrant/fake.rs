//! An in-memory fake of Qdrant for tests: the part of its gRPC API that the engine uses.
//!
//! It searches exactly, and computes idf over the corpus of a search, as Qdrant 1.19 does. It has no text index and no HNSW graph, so
//! it says nothing about speed, memory or recall, and it stores vectors in full precision where Qdrant rounds them: a suite that passes
//! here must also run against a real Qdrant (`CAIRN_TEST_QDRANT_URL`).

mod collection;
mod filters;
mod search;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use futures::stream;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body::Frame;
use http_body_util::StreamBody;
use prost::Message;
use qdrant_client::qdrant::alias_operations::Action;
use qdrant_client::qdrant::{
    BatchResult, ChangeAliases, CollectionDescription, CollectionExists, CollectionExistsRequest,
    CollectionExistsResponse, CollectionOperationResponse, CountPoints, CountResponse, CountResult,
    CreateCollection, CreateFieldIndexCollection, DeleteCollection, FacetCounts, FacetResponse,
    GetCollectionInfoRequest, GetCollectionInfoResponse, GetPoints, GetResponse, HealthCheckReply,
    ListCollectionsResponse, PointsOperationResponse, QueryBatchPoints, QueryBatchResponse, QueryPoints,
    QueryResponse, ScrollPoints, UpdateBatchPoints, UpdateBatchResponse, UpdateResult, UpdateStatus,
};
use tokio::net::TcpListener;
use tonic::Status;
use tonic::service::Routes;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Identity, Server, ServerTlsConfig};

use self::collection::Collection;

/// The reported version: the oldest one that the engine supports.
const VERSION: &str = "1.19.0";
/// The header of a gRPC message: one byte for compression and four for the length.
const FRAME_HEADER_BYTES: usize = 5;

/// Authentication and TLS.
#[derive(Clone, Default)]
pub struct FakeQdrantOptions {
    /// The API key that every call must have; `None` to accept all calls.
    pub api_key: Option<String>,
    /// A certificate with its chain and its private key, in PEM form, for TLS.
    pub certificate: Option<(String, String)>,
}

cairn_chassis::debug_fields!(FakeQdrantOptions);

/// A running fake of Qdrant. It stops when this is dropped.
#[derive(Debug)]
pub struct FakeQdrant {
    address: SocketAddr,
    serving: tokio::task::JoinHandle<()>,
}

impl FakeQdrant {
    /// Serves on the listener until this is dropped. Starts without collections.
    ///
    /// # Errors
    /// When the listener or the certificate cannot be used.
    pub fn start(
        listener: TcpListener,
        options: FakeQdrantOptions,
    ) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let address = listener.local_addr()?;
        let mut server = Server::builder();
        if let Some((certificate, key)) = &options.certificate {
            let identity = Identity::from_pem(certificate, key);
            server = server.tls_config(ServerTlsConfig::new().identity(identity))?;
        }
        let state = Arc::new(FakeServer { api_key: options.api_key, collections: Mutex::default() });
        let router: Router = Router::new().fallback(answer).with_state(state);
        let incoming = TcpIncoming::from(listener);
        let serving = Box::pin(server.add_routes(Routes::from(router)).serve_with_incoming(incoming));
        let serving = tokio::spawn(async move {
            if let Err(error) = serving.await {
                tracing::error!(%error, "the fake of Qdrant cannot serve");
            }
        });
        Ok(Self { address, serving })
    }

    /// The address of the listener.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for FakeQdrant {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

struct FakeServer {
    api_key: Option<String>,
    collections: Mutex<Collections>,
}

impl FakeServer {
    fn authenticate(&self, headers: &HeaderMap) -> Result<(), Status> {
        let given = headers.get("api-key").map(HeaderValue::as_bytes);
        match &self.api_key {
            Some(key) if given != Some(key.as_bytes()) => {
                Err(Status::unauthenticated("Must provide an API key or an Authorization bearer token"))
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// Handles a unary gRPC call.
async fn answer(State(server): State<Arc<FakeServer>>, request: Request) -> Response {
    match respond(&server, request).await {
        Ok(message) => framed(&message),
        Err(status) => status.into_http(),
    }
}

async fn respond(server: &FakeServer, request: Request) -> Result<Vec<u8>, Status> {
    server.authenticate(request.headers())?;
    let method = request.uri().path().to_owned();
    let body = axum::body::to_bytes(request.into_body(), usize::MAX).await;
    let body = body.map_err(|error| Status::internal(error.to_string()))?;
    let message = body.get(FRAME_HEADER_BYTES..).unwrap_or_default();
    let mut collections = server.collections.lock().unwrap_or_else(PoisonError::into_inner);
    match method.strip_prefix("/qdrant.").unwrap_or_default() {
        "Qdrant/HealthCheck" => {
            encode(&HealthCheckReply { version: VERSION.to_owned(), ..HealthCheckReply::default() })
        }
        "Collections/Get" => encode(&collections.info(&decode(message)?)?),
        "Collections/List" => encode(&collections.list()),
        "Collections/CollectionExists" => encode(&collections.exists(&decode(message)?)),
        "Collections/Create" => encode(&collections.create(decode(message)?)?),
        "Collections/Delete" => encode(&collections.delete(&decode(message)?)),
        "Collections/UpdateAliases" => encode(&collections.change_aliases(decode(message)?)?),
        "Points/CreateFieldIndex" => encode(&collections.create_index(decode(message)?)?),
        "Points/UpdateBatch" => encode(&collections.update(decode(message)?)?),
        "Points/Get" => encode(&collections.get(&decode(message)?)?),
        "Points/Scroll" => {
            let request: ScrollPoints = decode(message)?;
            encode(&collections.named(&request.collection_name)?.scroll(&request)?)
        }
        "Points/Count" => encode(&collections.count(&decode(message)?)?),
        "Points/Facet" => encode(&collections.facet(&decode(message)?)?),
        "Points/Query" => {
            let request: QueryPoints = decode(message)?;
            let result = collections.named(&request.collection_name)?.query(&request)?;
            encode(&QueryResponse { result, ..QueryResponse::default() })
        }
        "Points/QueryBatch" => encode(&collections.query_batch(&decode(message)?)?),
        _ => Err(unsupported(&method)),
    }
}

/// The error for what the engine does not use.
fn unsupported(what: &str) -> Status {
    Status::unimplemented(format!("the fake of Qdrant does not speak {what}"))
}

fn decode<M: Message + Default>(message: &[u8]) -> Result<M, Status> {
    M::decode(message).map_err(|error| Status::invalid_argument(error.to_string()))
}

fn encode(message: &impl Message) -> Result<Vec<u8>, Status> {
    Ok(message.encode_to_vec())
}

fn framed(message: &[u8]) -> Response {
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX).to_be_bytes();
    let bytes: Vec<u8> = [0].into_iter().chain(length).chain(message.iter().copied()).collect();
    let status = (HeaderName::from_static("grpc-status"), HeaderValue::from_static("0"));
    let trailers = HeaderMap::from_iter([status]);
    let frames = [Frame::data(Bytes::from(bytes)), Frame::trailers(trailers)].map(Ok::<_, Infallible>);
    let mut response = Response::new(Body::new(StreamBody::new(stream::iter(frames))));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    response
}

#[derive(Default)]
struct Collections {
    all: BTreeMap<String, Collection>,
    /// Collection names by alias.
    aliases: BTreeMap<String, String>,
}

impl Collections {
    fn resolve<'a>(&'a self, name: &'a str) -> &'a str {
        self.aliases.get(name).map_or(name, String::as_str)
    }

    fn named(&self, name: &str) -> Result<&Collection, Status> {
        self.all.get(self.resolve(name)).ok_or_else(|| missing(name))
    }

    fn named_mut(&mut self, name: &str) -> Result<&mut Collection, Status> {
        let resolved = self.resolve(name).to_owned();
        self.all.get_mut(&resolved).ok_or_else(|| missing(name))
    }

    fn info(&self, request: &GetCollectionInfoRequest) -> Result<GetCollectionInfoResponse, Status> {
        let result = Some(self.named(&request.collection_name)?.info());
        Ok(GetCollectionInfoResponse { result, ..GetCollectionInfoResponse::default() })
    }

    fn list(&self) -> ListCollectionsResponse {
        let collections = self.all.keys().map(|name| CollectionDescription { name: name.clone() }).collect();
        ListCollectionsResponse { collections, ..ListCollectionsResponse::default() }
    }

    fn exists(&self, request: &CollectionExistsRequest) -> CollectionExistsResponse {
        let exists = self.named(&request.collection_name).is_ok();
        let result = Some(CollectionExists { exists });
        CollectionExistsResponse { result, ..CollectionExistsResponse::default() }
    }

    fn create(&mut self, settings: CreateCollection) -> Result<CollectionOperationResponse, Status> {
        let name = settings.collection_name.clone();
        if self.all.contains_key(&name) {
            return Err(Status::already_exists(format!("Collection `{name}` already exists!")));
        }
        self.all.insert(name, Collection::new(settings));
        Ok(done())
    }

    fn delete(&mut self, request: &DeleteCollection) -> CollectionOperationResponse {
        self.aliases.retain(|_, collection| *collection != request.collection_name);
        let result = self.all.remove(&request.collection_name).is_some();
        CollectionOperationResponse { result, ..done() }
    }

    fn change_aliases(&mut self, request: ChangeAliases) -> Result<CollectionOperationResponse, Status> {
        for change in request.actions {
            let Some(Action::CreateAlias(alias)) = change.action else {
                return Err(unsupported("this change of aliases"));
            };
            self.named(&alias.collection_name)?;
            self.aliases.insert(alias.alias_name, alias.collection_name);
        }
        Ok(done())
    }

    fn create_index(
        &mut self,
        request: CreateFieldIndexCollection,
    ) -> Result<PointsOperationResponse, Status> {
        self.named_mut(&request.collection_name)?.index(request);
        Ok(PointsOperationResponse { result: Some(completed()), ..PointsOperationResponse::default() })
    }

    fn update(&mut self, request: UpdateBatchPoints) -> Result<UpdateBatchResponse, Status> {
        let collection = self.named_mut(&request.collection_name)?;
        let mut result = Vec::with_capacity(request.operations.len());
        for operation in request.operations.into_iter().filter_map(|operation| operation.operation) {
            collection.update(operation)?;
            result.push(completed());
        }
        Ok(UpdateBatchResponse { result, ..UpdateBatchResponse::default() })
    }

    fn get(&self, request: &GetPoints) -> Result<GetResponse, Status> {
        let result = self.named(&request.collection_name)?.get(request)?;
        Ok(GetResponse { result, ..GetResponse::default() })
    }

    fn count(&self, request: &CountPoints) -> Result<CountResponse, Status> {
        let count = self.named(&request.collection_name)?.count(request.filter.as_ref())?;
        Ok(CountResponse { result: Some(CountResult { count }), ..CountResponse::default() })
    }

    fn facet(&self, request: &FacetCounts) -> Result<FacetResponse, Status> {
        let hits = self.named(&request.collection_name)?.facet(request)?;
        Ok(FacetResponse { hits, ..FacetResponse::default() })
    }

    fn query_batch(&self, request: &QueryBatchPoints) -> Result<QueryBatchResponse, Status> {
        let collection = self.named(&request.collection_name)?;
        let mut result = Vec::with_capacity(request.query_points.len());
        for query in &request.query_points {
            result.push(BatchResult { result: collection.query(query)? });
        }
        Ok(QueryBatchResponse { result, ..QueryBatchResponse::default() })
    }
}

fn missing(name: &str) -> Status {
    Status::not_found(format!("Not found: Collection `{name}` doesn't exist!"))
}

fn done() -> CollectionOperationResponse {
    CollectionOperationResponse { result: true, ..CollectionOperationResponse::default() }
}

fn completed() -> UpdateResult {
    UpdateResult { status: UpdateStatus::Completed.into(), ..UpdateResult::default() }
}
