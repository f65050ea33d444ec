//! The composition of the service.

use std::sync::Arc;
use std::time::Duration;

use cairn_chassis::ambient::Ambient;
use cairn_chassis::channel::ServiceChannel;
use cairn_chassis::feed::compaction::Compaction;
use cairn_chassis::feed::{self, Feed};
use cairn_chassis::identity::{ServiceIdentitySource, Verifier};
use cairn_chassis::lifecycle::{self, Suspensions};
use cairn_chassis::limits::PlanLimits;
use cairn_chassis::server::Access;
use cairn_chassis::shared_storage::{self, SharedStorage};
use cairn_chassis::sql::{self, Db};
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;

use crate::activity::{Activities, Undos, run_retention};
use crate::assets::{AssetLocation, AssetStore, Assets};
use crate::batch::Batches;
use crate::changes::Changes;
use crate::columns::SnapshotCache;
use crate::context::Context;
use crate::database_cache::DatabaseCache;
use crate::databases::Databases;
use crate::documents::Documents;
use crate::files::Files;
use crate::folders::Folders;
use crate::locations::Locations;
use crate::memories::Memories;
use crate::names::Finder;
use crate::outside::Outside;
use crate::overview::Overviews;
use crate::past::Past;
use crate::records::Records;
use crate::removal::Removal;
use crate::trash::Trash;
use crate::tree::Trees;
use crate::usage::Accounts;
use crate::versions::Versions;
use crate::{Error, assets, retention, rpc, store};

/// How often idle in-memory data is evicted.
const SWEEP_PERIOD: Duration = Duration::from_secs(60);

/// The full names of the gRPC services that [`Service::routes`] serves.
pub const SERVICE_NAMES: &[&str] = &[
    cairn_proto::content::v1::activity_service_server::SERVICE_NAME,
    cairn_proto::content::v1::asset_service_server::SERVICE_NAME,
    cairn_proto::content::v1::batch_service_server::SERVICE_NAME,
    cairn_proto::content::v1::database_service_server::SERVICE_NAME,
    cairn_proto::content::v1::file_service_server::SERVICE_NAME,
    cairn_proto::content::v1::file_version_service_server::SERVICE_NAME,
    cairn_proto::content::v1::folder_service_server::SERVICE_NAME,
    cairn_proto::content::v1::location_service_server::SERVICE_NAME,
    cairn_proto::content::v1::memory_service_server::SERVICE_NAME,
    cairn_proto::content::v1::name_service_server::SERVICE_NAME,
    cairn_proto::content::v1::overview_service_server::SERVICE_NAME,
    cairn_proto::content::v1::trash_service_server::SERVICE_NAME,
    cairn_proto::content::v1::record_service_server::SERVICE_NAME,
    cairn_proto::content::v1::tree_service_server::SERVICE_NAME,
    cairn_proto::content::v1::usage_service_server::SERVICE_NAME,
    cairn_proto::document::v1::document_service_server::SERVICE_NAME,
    cairn_proto::feed::v1::change_service_server::SERVICE_NAME,
    cairn_proto::feed::v1::feed_service_server::SERVICE_NAME,
    shared_storage::SERVICE_NAME,
];

/// A memory may be public; files, tables and their messages are large.
pub const ACCESS: Access = Access {
    open: &["/cairn.content.v1.MemoryService/ExportMemory"],
    large: &[
        "/cairn.content.v1.FileService/CreateFile",
        "/cairn.content.v1.FileService/UpdateFile",
        "/cairn.content.v1.BatchService/BatchWrite",
        "/cairn.content.v1.AssetService/UploadAsset",
        "/cairn.content.v1.RecordService/ImportRecords",
        "/cairn.content.v1.RecordService/CreateDatabaseOfTable",
    ],
};

/// The configuration of the service.
#[derive(Debug, Clone)]
pub struct Config {
    /// The database of its tables.
    pub storage: sql::Config,
    /// How long deleted items stay in trash; for ever when absent.
    pub trash_retention: Option<Duration>,
    /// The location of the bytes of assets.
    pub assets: AssetLocation,
    /// The storage and upload limits of each plan.
    pub limits: PlanLimits,
    /// The memory budget of the in-memory columns of databases, in bytes; 0 disables them.
    pub columns_bytes: usize,
    /// The memory budget of the in-memory file names, in bytes; 0 disables them.
    pub names_bytes: usize,
}

/// The service.
#[derive(Debug)]
pub struct Service {
    context: Context,
    trash: Trash,
    assets: Assets,
    removal: Removal,
    verifier: Verifier,
}

impl Service {
    /// Opens the storage and migrates its tables.
    ///
    /// # Errors
    ///
    /// When the database cannot be reached or written, or was written by a newer version, or when the location of
    /// assets cannot be opened.
    pub async fn open(config: Config, ambient: Ambient) -> Result<Self, Error> {
        let context = open(&config, &ambient).await?;
        let trash = Trash::new(context.clone(), config.trash_retention);
        let objects = AssetStore::open(&config.assets).await?;
        let removal = Removal::new(context.clone(), objects.clone());
        let assets = Assets::new(context.clone(), objects);
        let verifier = ambient.verifier.refusing(context.suspensions.clone());
        Ok(Self { context, trash, assets, removal, verifier })
    }

    /// Connects svc-ingest, which opens after this service; `identity` is the identity of this service. Until then
    /// memories are served without documents of connected sources, and these count for no limit.
    pub fn connect(&self, ingest: ServiceChannel, identity: ServiceIdentitySource) {
        self.context.storage.connect(ingest.clone(), identity.clone());
        self.context.outside.connect(ingest, identity);
    }

    /// The generated servers, without layers: the composition adds those.
    pub fn routes(&self) -> Routes {
        let verifier = || self.verifier.clone();
        let past = || Past::new(self.context.clone());
        Routes::new(rpc::files::server(Files::new(self.context.clone()), past(), verifier()))
            .add_service(rpc::folders::server(Folders::new(self.context.clone()), verifier()))
            .add_service(rpc::memories::server(Memories::new(self.context.clone()), verifier()))
            .add_service(rpc::databases::server(Databases::new(self.context.clone()), verifier()))
            .add_service(rpc::records::server(Records::new(self.context.clone()), verifier()))
            .add_service(rpc::documents::server(Documents::new(self.context.clone()), verifier()))
            .add_service(rpc::versions::server(Versions::new(self.context.clone()), past(), verifier()))
            .add_service(rpc::assets::server(self.assets.clone(), verifier()))
            .add_service(rpc::batch::server(Batches::new(self.context.clone()), verifier()))
            .add_service(rpc::overview::server(Overviews::new(self.context.clone()), verifier()))
            .add_service(rpc::activity::server(
                Activities::new(self.context.clone()),
                Undos::new(self.context.clone()),
                verifier(),
            ))
            .add_service(rpc::trash::server(self.trash.clone(), verifier()))
            .add_service(rpc::tree::server(Trees::new(self.context.clone()), verifier()))
            .add_service(rpc::locations::server(Locations::new(self.context.clone()), verifier()))
            .add_service(rpc::names::server(Finder::new(self.context.clone()), verifier()))
            .add_service(rpc::usage::server(Accounts::new(self.context.clone()), verifier()))
            .add_service(shared_storage::Rpc::server(
                Arc::new(Accounts::new(self.context.clone())),
                verifier(),
            ))
            .add_service(rpc::changes::server(
                self.context.feed.clone(),
                Changes::new(self.context.clone()),
                verifier(),
            ))
            .add_service(feed::Rpc::server(self.context.feed.clone(), verifier()))
    }

    /// The server by which svc-auth reports changes of workspaces; each service has its own of that name.
    pub fn lifecycle(&self) -> Routes {
        let suspensions = self.context.suspensions.clone();
        let removal = Arc::new(self.removal.clone());
        Routes::new(lifecycle::Rpc::server(suspensions, removal, self.verifier.clone()))
    }

    /// Runs the background work until the shutdown: the retention of trash and activity, and the removal of remains
    /// of interrupted uploads. Then ends the open feed streams, so that the server can drain. Closing the storage is
    /// [`close`](Self::close), after the drain.
    pub async fn run(&self, shutdown: CancellationToken) {
        let emptying = retention::run(&self.trash, &self.context, &shutdown);
        let sweeping = assets::run_sweeps(&self.assets, &shutdown);
        let forgetting = run_retention(&self.context, &shutdown);
        let compaction = Compaction::new(self.context.feed.clone(), &self.context.ids);
        let compacting = Box::pin(compaction.run(&shutdown));
        let following = self.context.suspensions.run(shutdown.clone());
        let dropping = run_sweeps(&self.context);
        tokio::select! {
            () = shutdown.cancelled() => {}
            _ = async { tokio::join!(emptying, sweeping, forgetting, compacting, following, dropping) } => shutdown.cancelled().await,
        }
        self.context.feed.close();
    }

    /// Checks the storage, for readiness.
    ///
    /// # Errors
    ///
    /// When it is unavailable.
    pub async fn ping(&self) -> Result<(), Error> {
        Ok(self.context.db.ping().await?)
    }

    /// Closes the storage, after all servers have stopped.
    pub async fn close(&self) {
        self.context.db.close().await;
    }
}

/// Evicts idle in-memory data.
async fn run_sweeps(context: &Context) {
    let mut ticks = tokio::time::interval(SWEEP_PERIOD);
    loop {
        ticks.tick().await;
        context.columns.sweep(context.clock.now());
        context.names.sweep(context.clock.now());
    }
}

async fn open(config: &Config, ambient: &Ambient) -> Result<Context, Error> {
    let db = Db::open(&config.storage, store::SCHEMA, store::MIGRATIONS).await?;
    let feed = Feed::new(db.clone(), Arc::clone(&ambient.clock));
    let suspensions = Suspensions::open(db.clone(), Arc::clone(&ambient.clock)).await?;
    let limits = Arc::new(config.limits.clone());
    let (clock, ids) = (Arc::clone(&ambient.clock), ambient.ids.clone());
    let (outside, storage) = (Outside::default(), SharedStorage::new(Arc::clone(&clock)));
    let (columns, names) = (SnapshotCache::new(config.columns_bytes), SnapshotCache::new(config.names_bytes));
    let database_cache = DatabaseCache::default();
    Ok(Context {
        db,
        feed,
        suspensions,
        clock,
        ids,
        limits,
        storage,
        outside,
        columns,
        names,
        database_cache,
    })
}
