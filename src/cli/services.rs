//! The configurations of the services, whichever way they run: the options that `cairn up` and `cairn serve` share, and
//! how they become each service's `Config`. A new option of a service is added to a group of options and to the
//! configuration here, and nowhere else.

use std::path::PathBuf;
use std::sync::Arc;

use cairn_chassis::debug_fields;
use cairn_chassis::outbound::Guard;
use cairn_chassis::sealing::Keyring;
use cairn_chassis::sql;
use cairn_providers::Reach;
use clap::Args;

use super::agents::AgentOptions;
use super::bootstrap::BootstrapOptions;
use super::browse::BrowseOptions;
use super::connections::ConnectionOptions;
use super::content::ContentOptions;
use super::embedder::EmbedderOptions;
use super::ending::EndingOptions;
use super::memory::MemoryOptions;
use super::mesh::Role;
use super::oidc::OidcOptions;
use super::outbound::OutboundOptions;
use super::protection::{MailOptions, SecretKeyOptions, SigningKeyOptions, TlsOptions};
use super::public::PublicOptions;
use super::qdrant::QdrantOptions;
use super::reranker::RerankerOptions;
use super::sources::SourceOptions;
use super::webhooks::WebhookOptions;
use super::workspaces::WorkspaceOptions;

/// The folder of assets among a service's data.
pub(crate) const ASSETS_FOLDER: &str = "assets";
/// The folder of the search index among a service's data.
pub(crate) const INDEX_FOLDER: &str = "index";
/// The subfolder for archives while svc-sync reads them.
const SCRATCH_FOLDER: &str = "scratch";

/// The options of all services.
#[derive(Debug, Args)]
pub(crate) struct ServiceOptions {
    #[command(flatten)]
    pub(crate) connections: ConnectionOptions,
    #[command(flatten)]
    pub(crate) ending: EndingOptions,
    #[command(flatten)]
    pub(crate) public: PublicOptions,
    #[command(flatten)]
    pub(crate) bootstrap: BootstrapOptions,
    #[command(flatten)]
    workspaces: WorkspaceOptions,
    #[command(flatten)]
    outbound: OutboundOptions,
    #[command(flatten)]
    qdrant: QdrantOptions,
    #[command(flatten)]
    reranker: RerankerOptions,
    #[command(flatten)]
    sources: SourceOptions,
    #[command(flatten)]
    webhooks: WebhookOptions,
    #[command(flatten)]
    browse: BrowseOptions,
    #[command(flatten)]
    pub(crate) memory: MemoryOptions,
    #[command(flatten)]
    content: ContentOptions,
    #[command(flatten)]
    embedder: EmbedderOptions,
    #[command(flatten)]
    pub(crate) secret_key: SecretKeyOptions,
    #[command(flatten)]
    signing_key: SigningKeyOptions,
    #[command(flatten)]
    mail: MailOptions,
    #[command(flatten)]
    oidc: OidcOptions,
    #[command(flatten)]
    agents: AgentOptions,
    #[command(flatten)]
    pub(crate) tls: TlsOptions,
}

/// What is not an option, or not the same one in both ways to run.
pub(crate) struct Site {
    /// The folder that holds what services keep on their own disk.
    pub(crate) folder: PathBuf,
    /// The database of a service.
    pub(crate) database: Box<dyn Fn(Role) -> anyhow::Result<sql::Config> + Send + Sync>,
    /// The secret that services of the mesh share.
    pub(crate) mesh_secret: String,
    /// The address of the deployment, for links that are mailed; absent: none is.
    pub(crate) base_url: Option<String>,
    /// What stored secrets are sealed with; absent: they stand as they are.
    pub(crate) sealing: Option<Arc<Keyring>>,
}

debug_fields!(Site { folder, base_url });

impl ServiceOptions {
    /// What svc-auth is told.
    pub(crate) fn auth(&self, site: &Site) -> anyhow::Result<cairn_auth::Config> {
        Ok(cairn_auth::Config {
            storage: (site.database)(Role::Auth)?,
            mesh_secret: site.mesh_secret.clone(),
            default_plan: self.bootstrap.default_plan.clone(),
            plan_changes: self.workspaces.plan_changes(),
            workspaces_per_person: self.workspaces.workspaces_per_person,
            base_url: site.base_url.clone(),
            workspace_grace: self.workspaces.workspace_grace(),
            outbound_allowed: self.outbound.outbound_allow.clone(),
            mail: self.mail.config()?,
            oidc: self.oidc.config()?,
            oauth_clients: self.agents.oauth_clients,
            sealing: site.sealing.clone(),
            key_rotation: self.signing_key.rotation(),
        })
    }

    /// What is wrong with each group of a service's options by itself: where one is, the service is told nothing at all.
    pub(crate) fn refusals(&self, role: Role, site: &Site) -> Vec<anyhow::Error> {
        let found = match role {
            Role::Auth => vec![self.mail.config().err(), self.oidc.config().err()],
            Role::Retrieval => vec![
                self.qdrant.config().err(),
                self.embedder.config(&site.folder, &self.outbound).err(),
                self.reranker.open(&self.outbound.outbound_allow).err(),
            ],
            Role::Gateway | Role::Content | Role::Ingest | Role::Sync => Vec::new(),
        };
        found.into_iter().flatten().collect()
    }

    /// What svc-content is told.
    pub(crate) fn content(&self, site: &Site) -> anyhow::Result<cairn_content::Config> {
        Ok(cairn_content::Config {
            storage: (site.database)(Role::Content)?,
            trash_retention: self.content.trash_retention(),
            assets: self.content.assets_or(site.folder.join(ASSETS_FOLDER)),
            limits: self.content.asset_limits.clone().unwrap_or_default(),
            columns_bytes: self.content.columns_bytes(&self.memory),
            names_bytes: self.memory.file_names(),
        })
    }

    /// What svc-ingest is told.
    pub(crate) fn ingest(&self, site: &Site) -> anyhow::Result<cairn_ingest::Config> {
        let guard = Guard::new(&self.outbound.outbound_allow)?;
        Ok(cairn_ingest::Config {
            storage: (site.database)(Role::Ingest)?,
            limits: self.content.asset_limits.clone().unwrap_or_default(),
            reach: Reach::new(guard, &self.sources.source_roots),
            keyring: site.sealing.clone(),
            provider_bodies: self.memory.provider_bodies(),
            webhook_waits: self.webhooks.waits(),
        })
    }

    /// What svc-sync is told.
    pub(crate) fn sync(&self, site: &Site) -> anyhow::Result<cairn_sync::Config> {
        Ok(cairn_sync::Config {
            storage: (site.database)(Role::Sync)?,
            limits: self.content.asset_limits.clone().unwrap_or_default(),
            scratch: site.folder.join(SCRATCH_FOLDER),
        })
    }

    /// What svc-retrieval is told.
    pub(crate) fn retrieval(&self, site: &Site) -> anyhow::Result<cairn_retrieval::Config> {
        Ok(cairn_retrieval::Config {
            index_folder: site.folder.join(INDEX_FOLDER),
            qdrant: self.qdrant.config()?,
            embedding: self.embedder.config(&site.folder, &self.outbound)?,
            ranking: cairn_retrieval::Preferences {
                word_weight: self.embedder.embedder_word_weight,
                reranker: self.reranker.open(&self.outbound.outbound_allow)?,
            },
            browse: self.browse.config(&self.memory),
            names_bytes: self.memory.names(),
            storage: (site.database)(Role::Retrieval)?,
        })
    }

    /// Whether the search index is kept by Qdrant, and not on a disk of ours.
    pub(crate) fn index_is_external(&self) -> anyhow::Result<bool> {
        Ok(self.qdrant.config()?.is_some())
    }
}
