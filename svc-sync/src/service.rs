//! Wires up the service.

use std::path::PathBuf;
use std::sync::Arc;

use cairn_chassis::ambient::Ambient;
use cairn_chassis::channel::ServiceChannel;
use cairn_chassis::identity::{ServiceIdentitySource, Verifier};
use cairn_chassis::lifecycle::{self, Suspensions};
use cairn_chassis::limits::PlanLimits;
use cairn_chassis::server::Access;
use cairn_chassis::sql::{self, Db};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;

use crate::content::Content;
use crate::context::Context;
use crate::delegation::{Delegates, RemoteDelegates};
use crate::imports::Imports;
use crate::reading::Reader;
use crate::runs::Runner;
use crate::syncs::Syncs;
use crate::{Error, rpc, store};

/// The full names of the gRPC services that [`Service::routes`] serves.
pub const SERVICE_NAMES: &[&str] = &[
    cairn_proto::sync::v1::sync_service_server::SERVICE_NAME,
    cairn_proto::sync::v1::import_service_server::SERVICE_NAME,
];

/// A manifest carries its documents, an upload its archive.
pub const ACCESS: Access = Access {
    open: &[],
    large: &["/cairn.sync.v1.SyncService/PreviewSync", "/cairn.sync.v1.ImportService/PreviewImport"],
};

/// The configuration of the service.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where its tables are.
    pub storage: sql::Config,
    /// The limits of each plan.
    pub limits: PlanLimits,
    /// A folder for archives while they are read. Its files are unlinked, so they are gone when the process ends.
    pub scratch: PathBuf,
}

/// The services that it calls.
#[derive(Debug, Clone)]
pub struct Upstreams {
    /// Issues the delegated identities of runs.
    pub auth: ServiceChannel,
    /// What runs write to.
    pub content: ServiceChannel,
    /// This service's own identity.
    pub identity: ServiceIdentitySource,
}

/// The service.
#[derive(Debug)]
pub struct Service {
    context: Context,
    runner: Runner,
    verifier: Verifier,
}

impl Service {
    /// Opens the storage and brings its tables up to date.
    ///
    /// # Errors
    /// When the database cannot be reached or written, or was written by a newer version.
    pub async fn open(config: Config, ambient: Ambient, upstreams: Upstreams) -> Result<Self, Error> {
        let delegates = RemoteDelegates { auth: upstreams.auth, identity: upstreams.identity };
        let reader = Reader::of_this_binary();
        Self::open_with(config, ambient, upstreams.content, Arc::new(delegates), reader).await
    }

    pub(crate) async fn open_with(
        config: Config,
        ambient: Ambient,
        content: ServiceChannel,
        delegates: Arc<dyn Delegates>,
        reader: Reader,
    ) -> Result<Self, Error> {
        let db = Db::open(&config.storage, store::SCHEMA, store::MIGRATIONS).await?;
        let suspensions = Suspensions::open(db.clone(), Arc::clone(&ambient.clock)).await?;
        let verifier = ambient.verifier.refusing(suspensions.clone());
        let context = Context {
            db,
            suspensions,
            clock: ambient.clock,
            ids: ambient.ids,
            limits: Arc::new(config.limits),
            content: Content { channel: content, delegates },
            reader,
            scratch: config.scratch,
            wakeup: Arc::new(Notify::new()),
        };
        Ok(Self { runner: Runner::new(context.clone()), context, verifier })
    }

    /// The generated servers, without layers: the composition adds those.
    pub fn routes(&self) -> Routes {
        let imports = Imports::new(self.context.clone());
        Routes::new(rpc::syncs::server(Syncs::new(self.context.clone()), self.verifier.clone()))
            .add_service(rpc::imports::server(imports, self.verifier.clone()))
    }

    /// The server through which svc-auth suspends and removes workspaces; each service has one.
    pub fn lifecycle(&self) -> Routes {
        let suspensions = self.context.suspensions.clone();
        let rows = Arc::new(store::removal::rows(self.context.db.clone()));
        Routes::new(lifecycle::Rpc::server(suspensions, rows, self.verifier.clone()))
    }

    /// Executes runs and follows suspensions of workspaces until the shutdown. [`close`](Self::close) closes the storage, after the drain.
    pub async fn run(&self, shutdown: CancellationToken) {
        let following = self.context.suspensions.run(shutdown.clone());
        // Runs go back into the queue before the storage is closed.
        tokio::join!(following, self.runner.run(shutdown));
    }

    /// Closes the storage, after the last request.
    pub async fn close(&self) {
        self.context.db.close().await;
    }

    #[cfg(test)]
    pub(crate) const fn context(&self) -> &Context {
        &self.context
    }

    #[cfg(test)]
    pub(crate) const fn runner(&self) -> &Runner {
        &self.runner
    }
}
