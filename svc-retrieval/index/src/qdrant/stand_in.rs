//! A Qdrant for tests, in memory: the part of its gRPC API that the engine speaks, and nothing else.
//!
//! It searches exactly, and counts how rare a word is over what a search names, as a Qdrant of 1.19 does. It keeps no text index
//! and no graph, so it says nothing of speed, of memory or of what a graph misses, and it keeps vectors in full where Qdrant
//! rounds them: a suite that passes here is still run against a Qdrant (`CAIRN_TEST_QDRANT_URL`).

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

/// The version that it claims: the oldest that the engine takes.
const VERSION: &str = "1.19.0";
/// A message of gRPC stands behind a byte for its compression and four for its length.
const BEFORE_A_MESSAGE: usize = 5;

/// Who is let in, and how it is spoken to.
#[derive(Clone, Default)]
pub struct Door {
    /// The key that every call must carry; any call is taken without one.
    pub api_key: Option<String>,
    /// A certificate with its chain and its private key, in PEM form, for TLS.
    pub certificate: Option<(String, String)>,
}

cairn_chassis::debug_fields!(Door);

/// A Qdrant for tests. It ends with this.
#[derive(Debug)]
pub struct StandIn {
    address: SocketAddr,
    serving: tokio::task::JoinHandle<()>,
}

impl StandIn {
    /// Serves at that listener until it is dropped. It begins without a collection.
    ///
    /// # Errors
    /// When the listener or the certificate cannot be used.
    pub fn start(
        listener: TcpListener,
        door: Door,
    ) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let address = listener.local_addr()?;
        let mut server = Server::builder();
        if let Some((certificate, key)) = &door.certificate {
            let identity = Identity::from_pem(certificate, key);
            server = server.tls_config(ServerTlsConfig::new().identity(identity))?;
        }
        let served = Arc::new(Served { api_key: door.api_key, collections: Mutex::default() });
        let router: Router = Router::new().fallback(answer).with_state(served);
        let incoming = TcpIncoming::from(listener);
        let serving = Box::pin(server.add_routes(Routes::from(router)).serve_with_incoming(incoming));
        let serving = tokio::spawn(async move {
            if let Err(error) = serving.await {
                tracing::error!(%error, "the stand-in of Qdrant cannot serve");
            }
        });
        Ok(Self { address, serving })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

struct Served {
    api_key: Option<String>,
    collections: Mutex<Collections>,
}

impl Served {
    fn admit(&self, headers: &HeaderMap) -> Result<(), Status> {
        let given = headers.get("api-key").map(HeaderValue::as_bytes);
        match &self.api_key {
            Some(key) if given != Some(key.as_bytes()) => {
                Err(Status::unauthenticated("Must provide an API key or an Authorization bearer token"))
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// One call of gRPC: a message in, a message out, and the status in trailers.
async fn answer(State(served): State<Arc<Served>>, request: Request) -> Response {
    match respond(&served, request).await {
        Ok(message) => framed(&message),
        Err(status) => status.into_http(),
    }
}

async fn respond(served: &Served, request: Request) -> Result<Vec<u8>, Status> {
    served.admit(request.headers())?;
    let method = request.uri().path().to_owned();
    let body = axum::body::to_bytes(request.into_body(), usize::MAX).await;
    let body = body.map_err(|error| Status::internal(error.to_string()))?;
    let message = body.get(BEFORE_A_MESSAGE..).unwrap_or_default();
    let mut collections = served.collections.lock().unwrap_or_else(PoisonError::into_inner);
    match method.strip_prefix("/qdrant.").unwrap_or_default() {
        "Qdrant/HealthCheck" => {
            told(&HealthCheckReply { version: VERSION.to_owned(), ..HealthCheckReply::default() })
        }
        "Collections/Get" => told(&collections.info(&read(message)?)?),
        "Collections/List" => told(&collections.list()),
        "Collections/CollectionExists" => told(&collections.exists(&read(message)?)),
        "Collections/Create" => told(&collections.create(read(message)?)?),
        "Collections/Delete" => told(&collections.delete(&read(message)?)),
        "Collections/UpdateAliases" => told(&collections.change_aliases(read(message)?)?),
        "Points/CreateFieldIndex" => told(&collections.create_index(read(message)?)?),
        "Points/UpdateBatch" => told(&collections.update(read(message)?)?),
        "Points/Get" => told(&collections.get(&read(message)?)?),
        "Points/Scroll" => {
            let asked: ScrollPoints = read(message)?;
            told(&collections.named(&asked.collection_name)?.scroll(&asked)?)
        }
        "Points/Count" => told(&collections.count(&read(message)?)?),
        "Points/Facet" => told(&collections.facet(&read(message)?)?),
        "Points/Query" => {
            let asked: QueryPoints = read(message)?;
            let result = collections.named(&asked.collection_name)?.query(&asked)?;
            told(&QueryResponse { result, ..QueryResponse::default() })
        }
        "Points/QueryBatch" => told(&collections.query_batch(&read(message)?)?),
        _ => Err(unspoken(&method)),
    }
}

/// What the engine does not ask for.
fn unspoken(what: &str) -> Status {
    Status::unimplemented(format!("the stand-in of Qdrant does not speak {what}"))
}

fn read<M: Message + Default>(message: &[u8]) -> Result<M, Status> {
    M::decode(message).map_err(|error| Status::invalid_argument(error.to_string()))
}

fn told(message: &impl Message) -> Result<Vec<u8>, Status> {
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
    /// From an alias to the name of its collection.
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

    fn info(&self, asked: &GetCollectionInfoRequest) -> Result<GetCollectionInfoResponse, Status> {
        let result = Some(self.named(&asked.collection_name)?.info());
        Ok(GetCollectionInfoResponse { result, ..GetCollectionInfoResponse::default() })
    }

    fn list(&self) -> ListCollectionsResponse {
        let collections = self.all.keys().map(|name| CollectionDescription { name: name.clone() }).collect();
        ListCollectionsResponse { collections, ..ListCollectionsResponse::default() }
    }

    fn exists(&self, asked: &CollectionExistsRequest) -> CollectionExistsResponse {
        let exists = self.named(&asked.collection_name).is_ok();
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

    fn delete(&mut self, asked: &DeleteCollection) -> CollectionOperationResponse {
        self.aliases.retain(|_, collection| *collection != asked.collection_name);
        let result = self.all.remove(&asked.collection_name).is_some();
        CollectionOperationResponse { result, ..done() }
    }

    fn change_aliases(&mut self, asked: ChangeAliases) -> Result<CollectionOperationResponse, Status> {
        for change in asked.actions {
            let Some(Action::CreateAlias(alias)) = change.action else {
                return Err(unspoken("this change of aliases"));
            };
            self.named(&alias.collection_name)?;
            self.aliases.insert(alias.alias_name, alias.collection_name);
        }
        Ok(done())
    }

    fn create_index(&mut self, asked: CreateFieldIndexCollection) -> Result<PointsOperationResponse, Status> {
        self.named_mut(&asked.collection_name)?.index(asked);
        Ok(PointsOperationResponse { result: Some(completed()), ..PointsOperationResponse::default() })
    }

    fn update(&mut self, asked: UpdateBatchPoints) -> Result<UpdateBatchResponse, Status> {
        let collection = self.named_mut(&asked.collection_name)?;
        let mut result = Vec::with_capacity(asked.operations.len());
        for operation in asked.operations.into_iter().filter_map(|operation| operation.operation) {
            collection.update(operation)?;
            result.push(completed());
        }
        Ok(UpdateBatchResponse { result, ..UpdateBatchResponse::default() })
    }

    fn get(&self, asked: &GetPoints) -> Result<GetResponse, Status> {
        let result = self.named(&asked.collection_name)?.get(asked)?;
        Ok(GetResponse { result, ..GetResponse::default() })
    }

    fn count(&self, asked: &CountPoints) -> Result<CountResponse, Status> {
        let count = self.named(&asked.collection_name)?.count(asked.filter.as_ref())?;
        Ok(CountResponse { result: Some(CountResult { count }), ..CountResponse::default() })
    }

    fn facet(&self, asked: &FacetCounts) -> Result<FacetResponse, Status> {
        let hits = self.named(&asked.collection_name)?.facet(asked)?;
        Ok(FacetResponse { hits, ..FacetResponse::default() })
    }

    fn query_batch(&self, asked: &QueryBatchPoints) -> Result<QueryBatchResponse, Status> {
        let collection = self.named(&asked.collection_name)?;
        let mut result = Vec::with_capacity(asked.query_points.len());
        for query in &asked.query_points {
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
