//! Finds the right evidence and cites it: chunks, words, meaning, fusion.
//!
//! This service owns only what can be rebuilt: delete its index folder and it comes back from the owners' feeds. It
//! must not decide what lives or who may see it: the owner of a document confirms every result before it leaves.

pub mod chunk;
pub mod embed;
mod error;
pub mod index;
pub mod indexing;
pub mod owners;
mod rpc;
pub mod search;
pub mod vectors;

use std::path::PathBuf;
use std::sync::Arc;

use cairn_chassis::ambient::Ambient;
use cairn_chassis::channel::{MAX_MESSAGE_BYTES, ServiceChannel};
use cairn_chassis::identity::{ServiceIdentitySource, Verifier};
use cairn_proto::retrieval::v1::search_service_server::{self, SearchServiceServer};
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;

use self::embed::{Embedder, StaticRows};
pub use self::error::Error;
use self::index::{Engine, Index};
use self::indexing::Indexer;
use self::owners::Owner;
use self::search::Searcher;

/// The full names of the gRPC services here.
pub const SERVICE_NAMES: &[&str] = &[search_service_server::SERVICE_NAME];

/// What svc-retrieval is told at its opening.
#[derive(Debug, Clone)]
pub struct Config {
    /// The folder of the index; made when it is not there, wiped when it cannot be read.
    pub index_folder: PathBuf,
}

/// The services that svc-retrieval calls.
#[derive(Debug, Clone)]
pub struct Upstreams {
    /// Owns files and folders, and says which folders a scope covers.
    pub content: ServiceChannel,
    /// This service's own identity, for the feeds.
    pub identity: ServiceIdentitySource,
}

/// The retrieval service; cheap to clone.
#[derive(Debug, Clone)]
pub struct Service {
    verifier: Verifier,
    searcher: Searcher,
    indexer: Indexer,
}

impl Service {
    /// Opens the index; nothing is read from the feeds before [`Service::run`].
    ///
    /// # Errors
    /// When the index folder cannot be used or the built-in embedder cannot be read.
    pub async fn open(config: Config, ambient: Ambient, upstreams: Upstreams) -> Result<Self, Error> {
        let opened = tokio::task::spawn_blocking(move || open_engines(&config));
        let Engines { index, embedder } = opened.await??;
        let owners = vec![Owner::new("content", upstreams.content.clone(), upstreams.identity)];
        let indexer = Indexer::new(Arc::clone(&index), Arc::clone(&embedder), owners);
        let searcher = Searcher::new(index, embedder, indexer.clone(), upstreams.content);
        Ok(Self { verifier: ambient.verifier, searcher, indexer })
    }

    /// Its gRPC services.
    pub fn routes(&self) -> Routes {
        let server = SearchServiceServer::new(self.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES);
        Routes::new(server)
    }

    /// Follows the feeds until the shutdown.
    pub async fn run(&self, shutdown: CancellationToken) {
        self.indexer.run(shutdown).await;
    }

    fn verifier(&self) -> &Verifier {
        &self.verifier
    }

    fn searcher(&self) -> &Searcher {
        &self.searcher
    }
}

/// What finds, and what turns text into vectors for it.
struct Engines {
    index: Arc<dyn Engine>,
    embedder: Arc<dyn Embedder>,
}

fn open_engines(config: &Config) -> Result<Engines, Error> {
    let embedder: Arc<dyn Embedder> = Arc::new(StaticRows::open()?);
    let index = Index::open(&config.index_folder, embedder.name(), embedder.dimensions())?;
    Ok(Engines { index: Arc::new(index), embedder })
}
