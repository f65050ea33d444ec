//! Wires up the service.

use std::sync::Arc;
use std::time::Duration;

use cairn_chassis::ambient::Ambient;
use cairn_chassis::channel::ServiceChannel;
use cairn_chassis::feed::compaction::Compaction;
use cairn_chassis::feed::{self, Feed};
use cairn_chassis::identity::{ServiceIdentitySource, Verifier};
use cairn_chassis::lifecycle::{self, Suspensions};
use cairn_chassis::limits::PlanLimits;
use cairn_chassis::sealing::Keyring;
use cairn_chassis::server::Access;
use cairn_chassis::shared_storage::{self, SharedStorage};
use cairn_chassis::sql::{self, Db};
use cairn_extract::{Extractor, Settings};
use cairn_providers::Reach;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;

use crate::context::Context;
use crate::documents::Documents;
use crate::extraction::Extractions;
use crate::indexing::Indexing;
use crate::ingest::Ingests;
use crate::live::Live;
use crate::locations::Locations;
use crate::runs::{Connect, Runner};
use crate::sources::Sources;
use crate::tree::Trees;
use crate::usage::Accounts;
use crate::webhooks::{Deliverer, Remote, USUAL_WAITS, Webhooks};
use crate::{Error, rpc, store};

/// The full names of the gRPC services that [`Service::routes`] serves.
pub const SERVICE_NAMES: &[&str] = &[
    cairn_proto::document::v1::document_service_server::SERVICE_NAME,
    cairn_proto::feed::v1::change_service_server::SERVICE_NAME,
    cairn_proto::feed::v1::feed_service_server::SERVICE_NAME,
    cairn_proto::ingest::v1::indexing_service_server::SERVICE_NAME,
    cairn_proto::ingest::v1::ingest_service_server::SERVICE_NAME,
    cairn_proto::ingest::v1::live_service_server::SERVICE_NAME,
    cairn_proto::ingest::v1::location_service_server::SERVICE_NAME,
    cairn_proto::ingest::v1::source_service_server::SERVICE_NAME,
    cairn_proto::ingest::v1::tree_service_server::SERVICE_NAME,
    cairn_proto::ingest::v1::webhook_service_server::SERVICE_NAME,
    shared_storage::SERVICE_NAME,
];

/// Documents are large.
pub const ACCESS: Access = Access {
    open: &[],
    large: &["/cairn.ingest.v1.IngestService/IngestDocument", "/cairn.ingest.v1.IngestService/IngestFile"],
};

/// The configuration of the service.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where its tables are.
    pub storage: sql::Config,
    /// The limits of each plan.
    pub limits: PlanLimits,
    /// What sources may connect to: addresses, and folders of this machine.
    pub reach: Reach,
    /// The keyring that seals credentials of sources; without it none can be stored.
    pub keyring: Option<Arc<Keyring>>,
    /// The size of the cache of live documents in bytes.
    pub provider_bodies: u64,
    /// How long to wait between the tries of a delivery to a webhook, one after the other; empty: what is usual, a day in
    /// all.
    pub webhook_waits: Vec<Duration>,
}

/// The service.
#[derive(Debug)]
pub struct Service {
    context: Context,
    extractions: Extractions,
    runner: Runner,
    live: Live,
    deliverer: Deliverer,
    verifier: Verifier,
}

impl Service {
    /// Opens the storage and brings its tables up to date.
    ///
    /// # Errors
    /// When the database cannot be reached or written, or was written by a newer version.
    pub async fn open(config: Config, ambient: Ambient) -> Result<Self, Error> {
        let (keyring, bodies) = (config.keyring.clone(), config.provider_bodies);
        let connect: Arc<dyn Connect> = Arc::new(config.reach.clone());
        let guard = config.reach.guard().clone();
        let waits: Arc<[Duration]> = match config.webhook_waits.as_slice() {
            [] => USUAL_WAITS.into(),
            given => given.into(),
        };
        let context = open(config, &ambient).await?;
        let extractor = Extractor::start(Settings::default());
        let extractions = Extractions::new(context.clone(), extractor.clone());
        let entropy = Arc::clone(&ambient.entropy);
        let (ring, chance) = (keyring.clone(), Arc::clone(&entropy));
        let deliverer = Deliverer::new(context.clone(), guard, ring, chance, waits);
        let runner = Runner::new(context.clone(), connect, extractor, keyring, entropy);
        let live = Live::new(runner.clone(), Extractor::start(of_questions()), bodies);
        let verifier = ambient.verifier.refusing(context.suspensions.clone());
        Ok(Self { context, extractions, runner, live, deliverer, verifier })
    }

    /// Learns where svc-auth and svc-content are; `identity` is this service's own. Until then what svc-content keeps counts
    /// for no limit, and nothing is sent to webhooks.
    pub fn connect(&self, auth: ServiceChannel, content: ServiceChannel, identity: ServiceIdentitySource) {
        self.context.storage.connect(content.clone(), identity.clone());
        self.deliverer.connect(Arc::new(Remote { auth, content, identity }));
    }

    /// The generated servers, without layers: the composition adds those.
    pub fn routes(&self) -> Routes {
        let verifier = || self.verifier.clone();
        let context = || self.context.clone();
        let (ingests, accounts) = (Ingests::new(context()), Accounts::new(context()));
        let sources = Sources::new(self.runner.clone(), self.live.clone());
        Routes::new(rpc::ingest::server(ingests, accounts, verifier()))
            .add_service(rpc::documents::server(Documents::new(context()), verifier()))
            .add_service(rpc::indexing::server(Indexing::new(context()), verifier()))
            .add_service(rpc::live::server(self.live.clone(), verifier()))
            .add_service(rpc::locations::server(Locations::new(context()), verifier()))
            .add_service(rpc::sources::server(sources, verifier()))
            .add_service(rpc::tree::server(Trees::new(context()), verifier()))
            .add_service(rpc::webhooks::server(Webhooks::new(self.deliverer.clone()), verifier()))
            .add_service(shared_storage::Rpc::server(Arc::new(Accounts::new(context())), verifier()))
            .add_service(rpc::changes::server(self.context.feed.clone(), verifier()))
            .add_service(feed::Rpc::server(self.context.feed.clone(), verifier()))
    }

    /// The server through which svc-auth suspends and removes workspaces; each service has one.
    pub fn lifecycle(&self) -> Routes {
        let suspensions = self.context.suspensions.clone();
        let rows = Arc::new(store::removal::rows(self.context.db.clone()));
        Routes::new(lifecycle::Rpc::server(suspensions, rows, self.verifier.clone()))
    }

    /// Runs the background work (extraction, runs of sources, webhooks, suspensions of workspaces, compaction of the feed) until the
    /// shutdown, then ends the open feed streams so that the server can drain. [`close`](Self::close) closes the storage, after the drain.
    pub async fn run(&self, shutdown: CancellationToken) {
        let following = self.context.suspensions.run(shutdown.clone());
        // Runs go back into the queue before the storage is closed.
        let runs = self.runner.run(shutdown.clone());
        let deliveries = Box::pin(self.deliverer.run(&shutdown));
        let compaction = Compaction::new(self.context.feed.clone(), &self.context.ids);
        let compacting = Box::pin(compaction.run(&shutdown));
        let (extracting, asking) = (self.extractions.run(&shutdown), self.live.run(&shutdown));
        tokio::join!(following, extracting, runs, asking, deliveries, compacting);
        shutdown.cancelled().await;
        self.context.feed.close();
    }

    /// Closes the storage, after the last request.
    pub async fn close(&self) {
        self.context.db.close().await;
    }
}

/// Questions have a child pool of their own, so that they do not queue behind runs. Extraction that outlasts the deadline of a question
/// would be useless.
fn of_questions() -> Settings {
    Settings { wall: Duration::from_secs(10), ..Settings::default() }
}

async fn open(config: Config, ambient: &Ambient) -> Result<Context, Error> {
    let db = Db::open(&config.storage, store::SCHEMA, store::MIGRATIONS).await?;
    let feed = Feed::new(db.clone(), Arc::clone(&ambient.clock));
    let suspensions = Suspensions::open(db.clone(), Arc::clone(&ambient.clock)).await?;
    let (clock, ids, limits) = (Arc::clone(&ambient.clock), ambient.ids.clone(), Arc::new(config.limits));
    let arrivals = Arc::new(Notify::new());
    let storage = SharedStorage::new(Arc::clone(&clock));
    Ok(Context { db, feed, suspensions, clock, ids, limits, storage, arrivals })
}
