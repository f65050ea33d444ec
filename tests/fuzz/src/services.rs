//! All services of a deployment, in this process. Nothing goes on beside the requests: no runs, no deliveries, no feed is followed.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use cairn_chassis::ambient::Ambient;
use cairn_chassis::channel::ServiceChannel;
use cairn_chassis::clock::{Clock, SystemClock};
use cairn_chassis::entropy::OsEntropy;
use cairn_chassis::identity::ServiceIdentitySource;
use cairn_chassis::limits::PlanLimits;
use cairn_chassis::outbound::Guard;
use cairn_chassis::server::{self, Access};
use cairn_chassis::sql;
use tempfile::TempDir;
use tonic::service::Routes;

/// Who we are to an OpenID Connect provider.
pub const CLIENT_ID: &str = "cairn";

const MESH_SECRET: &str = "a secret of this run alone";

/// What a service serves.
#[derive(Debug)]
pub struct Served {
    /// The full names of its gRPC services.
    pub names: Vec<&'static str>,
    /// These, with what stands around them.
    pub routes: Routes,
}

/// The owner of the workspace that inputs have.
#[derive(Debug)]
pub struct Account {
    /// An API token with every permission.
    pub token: String,
    /// Its email.
    pub email: String,
    /// Its password.
    pub password: String,
    /// The id of the workspace.
    pub workspace: String,
}

/// Opens all of them on a folder, and makes an account; people may sign in at the OpenID Connect provider of that address on loopback,
/// too. The first of the services is auth and content together.
pub async fn open(folder: &TempDir, issuer: Option<String>) -> (Router, Vec<Served>, Account) {
    let database = |name: &str| sql::Config::sqlite(folder.path().join(name));
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let auth = cairn_auth::Config {
        storage: database("auth.db"),
        mesh_secret: MESH_SECRET.to_owned(),
        default_plan: "selfhosted".to_owned(),
        plan_changes: cairn_auth::PlanChanges::default(),
        workspaces_per_person: 50,
        base_url: None,
        workspace_grace: Duration::from_secs(60),
        outbound_allowed: issuer.iter().map(|_| "127.0.0.0/8".parse().expect("a network")).collect(),
        mail: None,
        oidc: issuer.map(provider),
        oauth_clients: 100,
        sealing: None,
        key_rotation: cairn_auth::Rotation::default(),
    };
    let entropy = Arc::new(OsEntropy);
    let auth = cairn_auth::Service::open(auth, Arc::clone(&clock), entropy).await.expect("auth");
    let ambient = auth.ambient();
    let content = cairn_content::Config {
        storage: database("content.db"),
        trash_retention: None,
        assets: cairn_content::AssetLocation::Memory,
        limits: PlanLimits::default(),
        columns_bytes: 16 << 20,
        names_bytes: 16 << 20,
    };
    let content = cairn_content::Service::open(content, ambient.clone()).await.expect("content");

    let names = [cairn_auth::SERVICE_NAMES, cairn_content::SERVICE_NAMES].concat();
    let access = [cairn_auth::ACCESS, cairn_content::ACCESS];
    let routes = auth.routes().into_axum_router().reset_fallback().merge(content.routes().into_axum_router());
    let base = serve(Routes::from(routes), names, &access, &ambient).await;
    let here = ServiceChannel::local(base.routes.clone());
    auth.connect(here.clone());
    let wanted =
        cairn_auth::Bootstrap { workspace_name: "Fuzz".to_owned(), ..cairn_auth::Bootstrap::default() };
    let made = auth.bootstrap(wanted, |_| Ok(())).await.expect("an account").expect("the first account");

    let identity_of =
        |name| ServiceIdentitySource::new(name, MESH_SECRET.to_owned(), here.clone(), Arc::clone(&clock));
    let ingest = open_ingest(database("ingest.db"), &ambient, &here, identity_of("ingest")).await;
    let outside = ServiceChannel::local(ingest.routes.clone());
    content.connect(outside.clone(), identity_of("content"));
    let sync = cairn_sync::Config {
        storage: database("sync.db"),
        limits: PlanLimits::default(),
        scratch: folder.path().join("scratch"),
    };
    let upstreams =
        cairn_sync::Upstreams { auth: here.clone(), content: here.clone(), identity: identity_of("sync") };
    let sync = cairn_sync::Service::open(sync, ambient.clone(), upstreams).await.expect("sync");
    let sync =
        serve(sync.routes(), cairn_sync::SERVICE_NAMES.to_vec(), &[cairn_sync::ACCESS], &ambient).await;
    let upstreams = cairn_retrieval::Upstreams {
        content: here.clone(),
        ingest: outside.clone(),
        identity: identity_of("retrieval"),
    };
    let retrieval = open_retrieval(folder, database("retrieval.db"), &ambient, upstreams).await;

    let gateway_identity = identity_of("gateway");
    let upstreams = cairn_gateway::Upstreams {
        auth: here.clone().presenting(gateway_identity.clone()),
        content_feed: here.clone().presenting(gateway_identity.clone()),
        ingest_feed: outside.clone().presenting(gateway_identity),
        content: here,
        ingest: outside,
        retrieval: ServiceChannel::local(retrieval.routes.clone()),
        sync: ServiceChannel::local(sync.routes.clone()),
    };
    // Every input comes from an address of its own, so that none is turned away for what others did.
    let config = cairn_gateway::Config {
        trusted_proxies: vec!["127.0.0.1".to_owned()],
        ..cairn_gateway::Config::default()
    };
    let gateway = cairn_gateway::Gateway::build(&config).expect("a configuration");
    let account = Account {
        token: made.token,
        email: made.email,
        password: made.password,
        workspace: made.workspace_id.to_string(),
    };
    (gateway.connect(upstreams, ambient).router(), vec![base, ingest, retrieval, sync], account)
}

fn provider(issuer: String) -> cairn_auth::OidcConfig {
    cairn_auth::OidcConfig {
        issuer,
        client_id: CLIENT_ID.to_owned(),
        client_secret: None,
        name: "Provider".to_owned(),
        scopes: vec!["email".to_owned(), "profile".to_owned()],
        sign_up: true,
    }
}

/// Routes with what stands around them in a service of that name.
async fn serve(routes: Routes, names: Vec<&'static str>, access: &[Access], ambient: &Ambient) -> Served {
    let composed = server::compose(routes, &names, access, &ambient.verifier).await;
    Served { routes: composed.expect("the contracts' descriptors").routes, names }
}

async fn open_ingest(
    storage: sql::Config,
    ambient: &Ambient,
    here: &ServiceChannel,
    identity: ServiceIdentitySource,
) -> Served {
    let config = cairn_ingest::Config {
        storage,
        limits: PlanLimits::default(),
        reach: cairn_providers::Reach::new(Guard::new(&[]).expect("a guard"), &[]),
        keyring: None,
        provider_bodies: 1 << 20,
        webhook_waits: Vec::new(),
    };
    let service = cairn_ingest::Service::open(config, ambient.clone()).await.expect("ingest");
    service.connect(here.clone(), here.clone(), identity);
    let names = cairn_ingest::SERVICE_NAMES.to_vec();
    serve(service.routes(), names, &[cairn_ingest::ACCESS], ambient).await
}

async fn open_retrieval(
    folder: &TempDir,
    storage: sql::Config,
    ambient: &Ambient,
    upstreams: cairn_retrieval::Upstreams,
) -> Served {
    let config = cairn_retrieval::Config {
        index_folder: folder.path().join("index"),
        qdrant: None,
        embedding: cairn_embed::Config::default(),
        ranking: cairn_retrieval::Preferences::default(),
        browse: cairn_browse::Config::default(),
        names_bytes: 1 << 20,
        storage,
    };
    let opened = cairn_retrieval::Service::open(config, ambient.clone(), upstreams).await;
    let service = opened.expect("retrieval");
    let names = cairn_retrieval::SERVICE_NAMES.to_vec();
    serve(service.routes(), names, &[cairn_retrieval::ACCESS], ambient).await
}
