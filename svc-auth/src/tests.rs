//! The service as its callers see it, on every storage engine.

mod bootstrap;
mod delegation;
mod doctor;
mod exchange;
mod folders;
mod invitations;
mod keys;
mod layers;
mod lifecycle;
mod members;
mod oauth;
mod proof;
mod rotation;
mod sessions;
mod sign_ins;
mod storage;
mod tokens;
mod views;
mod workspaces;

use std::sync::Arc;
use std::time::Duration;

use cairn_chassis::call::Call;
use cairn_chassis::channel::ServiceChannel;
use cairn_chassis::clock::{Clock, ManualClock, Timestamp};
use cairn_chassis::entropy::{Entropy, OsEntropy};
use cairn_chassis::identity::{
    Identity, PermissionSet, Principal, PrincipalKind, Role, Scope, ServiceIdentitySource,
};
use cairn_chassis::server;
use cairn_chassis::status::{Problem, Reason};
use cairn_chassis::testing::{TestDb, engines};
use cairn_proto::auth::v1::session_service_client::SessionServiceClient;
use cairn_proto::auth::v1::token_service_client::TokenServiceClient;
use cairn_proto::auth::v1::workspace_service_client::WorkspaceServiceClient;
use cairn_proto::auth::v1::{CreateTokenRequest, Permission, Token};
use cairn_proto::ids::{UserId, WorkspaceId};
use tonic::metadata::MetadataMap;
use tonic::{Request, Status};

use crate::sessions::Device;
use crate::users::NewUser;
use crate::{ACCESS, Bootstrap, Bootstrapped, Config, PlanChanges, Rotation, SERVICE_NAMES, Service, store};

const MESH_SECRET: &str = "a mesh secret for tests";
const PASSWORD: &str = "correct horse battery";
const MINUTE: Duration = Duration::from_secs(60);

/// A deployment after its first start, on one engine.
struct World {
    engine: &'static str,
    clock: Arc<ManualClock>,
    service: Service,
    /// As the gateway calls.
    channel: ServiceChannel,
    /// As a stranger does.
    direct: ServiceChannel,
    first: Bootstrapped,
    _storage: TestDb,
}

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(Timestamp::from_seconds(1_800_000_000)))
}

fn call() -> Call {
    Call::within(MINUTE)
}

fn config(storage: &TestDb) -> Config {
    let default_plan = "selfhosted".to_owned();
    Config {
        storage: storage.config.clone(),
        mesh_secret: MESH_SECRET.to_owned(),
        default_plan,
        plan_changes: PlanChanges::Owner,
        workspaces_per_person: 20,
        base_url: None,
        workspace_grace: crate::DEFAULT_GRACE,
        mail: None,
        sealing: None,
        key_rotation: Rotation::default(),
        oidc: None,
        oauth_clients: 20,
        outbound_allowed: vec!["127.0.0.1/32".parse().unwrap()],
    }
}

async fn open(storage: &TestDb, clock: &Arc<ManualClock>) -> Result<Service, crate::Error> {
    let shared: Arc<dyn Clock> = Arc::<ManualClock>::clone(clock);
    let entropy: Arc<dyn Entropy> = Arc::new(OsEntropy);
    Service::open(config(storage), shared, entropy).await
}

fn wanted() -> Bootstrap {
    let password = Some(PASSWORD.to_owned());
    Bootstrap { password, workspace_name: "Home".to_owned(), ..Bootstrap::default() }
}

/// The service behind the layers that it has in a process.
async fn local(service: &Service) -> ServiceChannel {
    let verifier = service.ambient().verifier;
    let composed = server::compose(service.routes(), SERVICE_NAMES, &[ACCESS], &verifier).await.unwrap();
    ServiceChannel::local(composed.routes)
}

async fn worlds() -> Vec<World> {
    let mut worlds = Vec::new();
    for storage in engines().await {
        let clock = clock();
        let service = open(&storage, &clock).await.unwrap();
        let first = service.bootstrap(wanted(), |_| Ok(())).await.unwrap().unwrap();
        service.connect(folders::content(service.ambient().verifier).await);
        let direct = local(&service).await;
        let shared: Arc<dyn Clock> = Arc::<ManualClock>::clone(&clock);
        let gateway = ServiceIdentitySource::new("gateway", MESH_SECRET.to_owned(), direct.clone(), shared);
        let channel = direct.clone().presenting(gateway);
        worlds.push(World {
            engine: storage.engine,
            clock,
            service,
            channel,
            direct,
            first,
            _storage: storage,
        });
    }
    worlds
}

/// A person with an identity, as a session's exchange gives it.
#[derive(Clone)]
struct Person {
    id: UserId,
    identity: String,
}

impl Person {
    fn request<T>(&self, message: T) -> Request<T> {
        Call::within(MINUTE).with_identity(&self.identity).request(message)
    }
}

impl World {
    fn tokens(&self) -> TokenServiceClient<ServiceChannel> {
        TokenServiceClient::new(self.channel.clone())
    }

    fn sessions(&self) -> SessionServiceClient<ServiceChannel> {
        SessionServiceClient::new(self.channel.clone())
    }

    fn workspaces(&self) -> WorkspaceServiceClient<ServiceChannel> {
        WorkspaceServiceClient::new(self.channel.clone())
    }

    fn workspace(&self) -> String {
        self.first.workspace_id.to_string()
    }

    async fn owner(&self) -> Person {
        let (user, _) =
            store::users::find_account(&self.service.db, &self.first.email).await.unwrap().unwrap();
        self.person_of(user.id)
    }

    /// A new member of the first workspace.
    async fn member(&self, email: &str, role: Role) -> Person {
        let person = self.stranger(email).await;
        self.join(person.id, self.first.workspace_id, role).await;
        person
    }

    /// A new account without a workspace.
    async fn stranger(&self, email: &str) -> Person {
        let id = self.service.ambient.ids.next();
        let mut tx = self.service.db.begin_write().await.unwrap();
        let user = NewUser { id, email, name: email, password_hash: Some("none"), email_verified: false };
        store::users::insert(&mut tx, &user, self.clock.now()).await.unwrap();
        tx.commit().await.unwrap();
        self.person_of(id)
    }

    async fn join(&self, user: UserId, workspace: WorkspaceId, role: Role) {
        let mut tx = self.service.db.begin_write().await.unwrap();
        store::members::insert(&mut tx, workspace, user, role, self.clock.now()).await.unwrap();
        tx.commit().await.unwrap();
    }

    /// A fresh identity of a person: sessions are tested on their own.
    fn person_of(&self, id: UserId) -> Person {
        let now = self.clock.now();
        let identity = Identity {
            principal: Principal { kind: PrincipalKind::User, id: id.to_string(), name: "person".to_owned() },
            workspace: None,
            role: None,
            permissions: PermissionSet::default(),
            may_publish: false,
            question_log_days: None,
            on_behalf_of: None,
            scope: Scope::All,
            plan: None,
            expires_at: now,
        };
        Person { id, identity: self.service.keys.issue(identity, now, None).unwrap().identity }
    }

    /// Makes a token of the first workspace.
    async fn token(&self, person: &Person, permissions: &[Permission]) -> (Token, String) {
        let message = CreateTokenRequest {
            workspace_id: self.workspace(),
            name: "agent".to_owned(),
            permissions: permissions.iter().map(|permission| (*permission).into()).collect(),
            ..CreateTokenRequest::default()
        };
        let created = self.tokens().create_token(person.request(message)).await.unwrap().into_inner();
        (created.token.unwrap(), created.secret)
    }

    /// What a service of the mesh reads in a signed identity.
    async fn read(&self, identity: &str) -> Result<Identity, Problem> {
        let mut metadata = MetadataMap::new();
        metadata.insert("authorization", format!("Bearer {identity}").parse().unwrap());
        self.service.ambient().verifier.authenticate(&metadata).await
    }
}

fn reason<T: std::fmt::Debug>(result: Result<T, Status>) -> Reason {
    problem(result).reason
}

fn problem<T: std::fmt::Debug>(result: Result<T, Status>) -> Problem {
    Problem::from_status(&result.unwrap_err())
}

/// The paths and codes of a validation error.
fn broken<T: std::fmt::Debug>(result: Result<T, Status>) -> Vec<(String, String)> {
    let problem = problem(result);
    assert_eq!(problem.reason, Reason::ValidationError, "{problem}");
    problem.violations.into_iter().map(|violation| (violation.path, violation.code)).collect()
}
