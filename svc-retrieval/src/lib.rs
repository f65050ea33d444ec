//! Finds the right evidence and cites it: chunks, words, meaning, fusion.
//!
//! The index is derived state: delete its folder and it is rebuilt from the owners' feeds. This service does not decide what
//! exists or who may see it: the owner of a document confirms every result before it is returned. Counts of retrievals and, where an
//! owner wants that, the questions are in tables that no answer depends on ([`analytics`]).

pub mod analytics;
mod doctor;
mod entry;
mod error;
mod generations;
mod golden;
mod indexing;
mod kinds;
mod owners;
mod partition;
mod questions;
mod rpc;
mod search;
mod store;
mod stored_by_owner;

use std::path::PathBuf;
use std::sync::Arc;

use cairn_browse::Browser;
use cairn_chassis::ambient::Ambient;
use cairn_chassis::channel::{MAX_MESSAGE_BYTES, ServiceChannel};
use cairn_chassis::identity::{ServiceIdentitySource, Verifier};
use cairn_chassis::jobs::Leases;
use cairn_chassis::lifecycle;
use cairn_chassis::server::Access;
use cairn_chassis::sql;
use cairn_embed::{Embedders, StaticRows};
use cairn_index::{EngineFactory, FolderFactory, qdrant};
use cairn_proto::retrieval::v1::analytics_service_server::{self, AnalyticsServiceServer};
use cairn_proto::retrieval::v1::browse_service_server::{self, BrowseServiceServer};
use cairn_proto::retrieval::v1::golden_service_server::{self, GoldenServiceServer};
use cairn_proto::retrieval::v1::index_service_server::{self, IndexServiceServer};
use cairn_proto::retrieval::v1::question_service_server::{self, QuestionServiceServer};
use cairn_proto::retrieval::v1::related_service_server::{self, RelatedServiceServer};
use cairn_proto::retrieval::v1::search_service_server::{self, SearchServiceServer};
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;

use self::analytics::Analytics;
pub use self::doctor::{examine, mend};
pub use self::error::Error;
use self::generations::Generations;
use self::golden::Golden;
use self::indexing::turns::{self, Turns};
use self::owners::Owner;
use self::questions::Questions;
pub use self::search::tuning::WORD_WEIGHT;
use self::search::{ContainerNamesCache, Searcher};
pub use self::search::{Preferences, rerank};
pub use self::stored_by_owner::{StoredByOwner, damaged_files, read_stored};

/// The tables of this service, for commands that compare them with a database.
pub const TABLES: sql::Tables = sql::Tables { service: store::SCHEMA, migrations: store::MIGRATIONS };

/// The full names of the gRPC services here.
pub const SERVICE_NAMES: &[&str] = &[
    search_service_server::SERVICE_NAME,
    browse_service_server::SERVICE_NAME,
    related_service_server::SERVICE_NAME,
    index_service_server::SERVICE_NAME,
    analytics_service_server::SERVICE_NAME,
    question_service_server::SERVICE_NAME,
    golden_service_server::SERVICE_NAME,
];

/// All methods need an identity; only the text of a file is large.
pub const ACCESS: Access = Access { open: &[], large: &["/cairn.retrieval.v1.GoldenService/CheckEdit"] };

/// The configuration of svc-retrieval.
#[derive(Debug, Clone)]
pub struct Config {
    /// The folder of the index; created when missing, wiped when unreadable.
    pub index_folder: PathBuf,
    /// The Qdrant that has the index instead of the folder.
    pub qdrant: Option<qdrant::Config>,
    /// The embedder.
    pub embedding: cairn_embed::Config,
    /// How results are ranked.
    pub ranking: Preferences,
    /// The limits of scripts.
    pub browse: cairn_browse::Config,
    /// The size of the cache of folder and database names, in bytes; names that do not fit are read by each search.
    pub names_bytes: u64,
    /// Where retrievals are counted.
    pub storage: sql::Config,
}

/// The services that svc-retrieval calls.
#[derive(Debug, Clone)]
pub struct Upstreams {
    /// Owns files and folders, and says which folders a scope covers.
    pub content: ServiceChannel,
    /// Owns what comes from outside.
    pub ingest: ServiceChannel,
    /// This service's own identity, for the feeds.
    pub identity: ServiceIdentitySource,
}

/// The retrieval service; cheap to clone.
#[derive(Debug, Clone)]
pub struct Service {
    verifier: Verifier,
    searcher: Searcher,
    browser: Browser,
    generations: Generations,
    analytics: Analytics,
    questions: Questions,
    golden: Golden,
}

impl Service {
    /// Opens the index; nothing is read from the feeds before [`Service::run`].
    ///
    /// # Errors
    /// When the storage cannot be opened, the index folder cannot be used, or the configured embedder can never be.
    pub async fn open(config: Config, ambient: Ambient, upstreams: Upstreams) -> Result<Self, Error> {
        let analytics = Analytics::open(&config.storage, &ambient).await?;
        let model = Arc::new(StaticRows::open()?);
        let questions = Questions::new(
            analytics.db().clone(),
            analytics.suspensions().clone(),
            &ambient,
            Arc::clone(&model),
        );
        let golden = Golden::new(analytics.db().clone(), &ambient);
        let (ranking, browsing) = (config.ranking.clone(), config.browse);
        let clock = || Arc::clone(&ambient.clock);
        let Upstreams { content, ingest, identity } = upstreams;
        let owners = vec![
            Owner::of_content(content.clone(), identity.clone()),
            Owner::of_outside(ingest.clone(), identity.clone(), clock()),
        ];
        // Processes that share the index share these tables, too.
        let turns = match &config.qdrant {
            Some(_) => {
                let db = analytics.db().clone();
                Turns::shared(Leases::new(db, clock(), &ambient.ids, turns::TERM))
            }
            None => Turns::default(),
        };
        let generations = open_generations(&config, owners, turns, &ambient).await?;
        let browser = Browser::new(
            browsing,
            (content.clone(), ingest.clone()),
            identity,
            Arc::new(generations.clone()),
            clock(),
        );
        let names = ContainerNamesCache::new(config.names_bytes);
        let stores = (generations.clone(), browser.clone());
        let searcher = Searcher::new(stores, (content, ingest), clock(), ranking, (model, names));
        let verifier = ambient.verifier.refusing(analytics.suspensions().clone());
        Ok(Self { verifier, searcher, browser, generations, analytics, questions, golden })
    }

    /// Its gRPC services.
    pub fn routes(&self) -> Routes {
        let server = SearchServiceServer::new(self.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES);
        Routes::new(server)
            .add_service(RelatedServiceServer::new(self.clone()))
            .add_service(BrowseServiceServer::new(self.clone()))
            .add_service(IndexServiceServer::new(self.clone()))
            .add_service(AnalyticsServiceServer::new(self.clone()))
            .add_service(QuestionServiceServer::new(self.clone()))
            .add_service(GoldenServiceServer::new(self.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES))
    }

    /// The server by which svc-auth tells what becomes of workspaces.
    pub fn lifecycle(&self) -> Routes {
        let suspensions = self.analytics.suspensions().clone();
        Routes::new(lifecycle::Rpc::server(suspensions, Arc::new(self.clone()), self.verifier.clone()))
    }

    /// Follows the feeds, embeds and counts, until the shutdown.
    pub async fn run(&self, shutdown: CancellationToken) {
        tokio::join!(
            self.generations.run(shutdown.clone()),
            Box::pin(self.analytics.run(shutdown.clone())),
            Box::pin(self.questions.run(shutdown)),
        );
    }

    /// Flushes and closes the storage, when nothing is served any more.
    pub async fn close(&self) {
        self.questions.close().await;
        self.analytics.close().await;
    }

    fn verifier(&self) -> &Verifier {
        &self.verifier
    }

    fn generations(&self) -> &Generations {
        &self.generations
    }

    fn searcher(&self) -> &Searcher {
        &self.searcher
    }

    fn browser(&self) -> &Browser {
        &self.browser
    }

    fn analytics(&self) -> &Analytics {
        &self.analytics
    }

    fn questions(&self) -> &Questions {
        &self.questions
    }

    const fn golden(&self) -> &Golden {
        &self.golden
    }
}

async fn open_generations(
    config: &Config,
    owners: Vec<Owner>,
    turns: Turns,
    ambient: &Ambient,
) -> Result<Generations, Error> {
    let (embedding, embedding_clock) = (config.embedding.clone(), Arc::clone(&ambient.clock));
    // Blocks: a model's files are read.
    let opened = tokio::task::spawn_blocking(move || Embedders::open(embedding, embedding_clock));
    let embedders = opened.await??;
    let factory: Arc<dyn EngineFactory> = match &config.qdrant {
        Some(config) => qdrant::open(config, Arc::clone(&ambient.clock), ambient.ids.clone())?,
        None => Arc::new(FolderFactory::open(&config.index_folder)?),
    };
    Generations::open(factory, embedders, owners, turns).await
}
