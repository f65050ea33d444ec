//! The contract of this service, on every engine, over a real svc-content.

mod imports;
mod imports_of_notion;
mod kills;
mod layers;
mod limits;
mod over_grpc;
mod readers;
mod removal;
mod rollbacks;
mod runs;
mod simulation;
mod statements;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use cairn_chassis::ambient::Ambient;
use cairn_chassis::channel::ServiceChannel;
use cairn_chassis::identity::{Identity, Permission, PermissionSet, PrincipalKind};
use cairn_chassis::limits::PlanLimits;
use cairn_chassis::server;
use cairn_chassis::sql;
use cairn_chassis::status::{Problem, Reason};
use cairn_chassis::testing::identity::Issuer;
use cairn_chassis::testing::{TestDb, engines};
use cairn_content::AssetLocation;
use cairn_proto::content::v1::file_service_client::FileServiceClient;
use cairn_proto::content::v1::folder_service_client::FolderServiceClient;
use cairn_proto::content::v1::{self as content, File};
use cairn_proto::ids::WorkspaceId;
use prost_types::FieldMask;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use tonic::Request;
use uuid::Uuid;

use crate::delegation::{Delegated, Delegates};
use crate::imports::Imports;
use crate::manifest::Sent;
use crate::model::{ConflictPolicy, Counters, Requester, RunStatus};
use crate::reading::Reader;
use crate::scope::Caller;
use crate::service::{Config, Service};
use crate::syncs::{Draft, RunView, Syncs};
use crate::{Error, store};

/// Who says what whoever asked may still do.
#[derive(Debug)]
struct Rights {
    issuer: Arc<Issuer>,
    held: Mutex<PermissionSet>,
    plan: Mutex<String>,
}

#[async_trait::async_trait]
impl Delegates for Rights {
    async fn delegate(&self, workspace: WorkspaceId, _: &Requester) -> Result<Delegated, Problem> {
        let identity = Identity {
            workspace: Some(workspace),
            plan: Some(self.plan.lock().unwrap().clone()),
            ..self.issuer.service("sync")
        };
        let permissions = *self.held.lock().unwrap();
        Ok(Delegated { identity: self.issuer.sign(&identity).unwrap(), permissions })
    }
}

/// One engine with this service and svc-content on it.
struct Bench {
    engine: &'static str,
    service: Service,
    syncs: Syncs,
    imports: Imports,
    rights: Arc<Rights>,
    issuer: Arc<Issuer>,
    content: ServiceChannel,
    caller: Caller,
    _test: TestDb,
    _folder: TempDir,
}

async fn benches() -> Vec<Bench> {
    let mut benches = Vec::new();
    for test in engines().await {
        benches.push(Bench::new(test).await);
    }
    benches
}

fn workspace() -> WorkspaceId {
    WorkspaceId(Uuid::from_u128(1))
}

fn limits() -> PlanLimits {
    PlanLimits::with_overrides("small=1:1:2").unwrap()
}

fn config_of_content(storage: sql::Config, folder: &TempDir) -> cairn_content::Config {
    cairn_content::Config {
        storage,
        trash_retention: None,
        assets: AssetLocation::Folder(folder.path().join("assets")),
        limits: limits(),
        columns_bytes: 0,
        names_bytes: 0,
    }
}

impl Bench {
    async fn new(test: TestDb) -> Self {
        let issuer = Arc::new(Issuer::new().unwrap());
        let ambient = issuer.ambient();
        Box::pin(Self::of(test, TempDir::new().unwrap(), issuer, ambient)).await
    }

    /// The ambient is this service's; svc-content has that of the issuer, and its storage in the folder.
    async fn of(test: TestDb, folder: TempDir, issuer: Arc<Issuer>, ambient: Ambient) -> Self {
        let storage = match test.engine {
            "sqlite" => sql::Config::sqlite(folder.path().join("content.db")),
            _ => test.config.clone(),
        };
        let config = config_of_content(storage, &folder);
        let opened = cairn_content::Service::open(config, issuer.ambient()).await.unwrap();
        let (names, access) = (cairn_content::SERVICE_NAMES, cairn_content::ACCESS);
        let composed = server::compose(opened.routes(), names, &[access], &ambient.verifier).await.unwrap();
        let content = ServiceChannel::local(composed.routes);
        let (held, plan) = (Mutex::new(PermissionSet::all()), Mutex::new("selfhosted".to_owned()));
        let rights = Arc::new(Rights { issuer: Arc::clone(&issuer), held, plan });
        let scratch = folder.path().join("scratch");
        let config = Config { storage: test.config.clone(), limits: limits(), scratch };
        let delegates = Arc::<Rights>::clone(&rights);
        let service =
            Service::open_with(config, ambient, content.clone(), delegates, Reader::in_this_process());
        let service = service.await.unwrap();
        let requester =
            Requester { kind: PrincipalKind::Token, id: "test-token".into(), name: "A token".into() };
        let caller = Caller { workspace: workspace(), requester, plan: Some("selfhosted".into()) };
        let syncs = Syncs::new(service.context().clone());
        let imports = Imports::new(service.context().clone());
        let engine = test.engine;
        Self {
            engine,
            service,
            syncs,
            imports,
            rights,
            issuer,
            content,
            caller,
            _test: test,
            _folder: folder,
        }
    }

    async fn preview(&self, draft: Draft) -> Result<RunView, Error> {
        self.syncs.preview(&self.caller, draft).await
    }

    async fn get(&self, shown: &RunView) -> RunView {
        self.syncs.get(&self.caller, &shown.run.id.to_string()).await.unwrap()
    }

    /// Works on whatever is due, in this task.
    async fn work(&self) {
        let (context, runner) = (self.service.context(), self.service.runner());
        loop {
            let now = context.clock.now();
            let Some(run) = store::runs::claimable(&context.db, now, 1).await.unwrap().pop() else { return };
            if let Some(run) = runner.claim(run).await.unwrap() {
                runner.perform(run, &CancellationToken::new()).await;
            }
        }
    }

    async fn start(&self, shown: &RunView) -> Result<RunView, Error> {
        self.syncs.start(&self.caller, &shown.run.id.to_string()).await
    }

    /// Previews, starts and finishes.
    async fn sync(&self, draft: Draft) -> RunView {
        let previewed = self.preview(draft).await.unwrap();
        let started = self.start(&previewed).await.unwrap();
        assert_eq!(started.run.shown(), RunStatus::Queued, "{}", self.engine);
        self.work().await;
        self.get(&previewed).await
    }

    async fn roll_back(&self, shown: &RunView) -> RunView {
        let started = self.syncs.roll_back(&self.caller, &shown.run.id.to_string()).await.unwrap();
        assert_eq!(started.run.shown(), RunStatus::Running);
        self.work().await;
        self.get(shown).await
    }

    fn request<T>(&self, message: T) -> Request<T> {
        self.issuer.request(workspace(), message).unwrap()
    }

    fn files(&self) -> FileServiceClient<ServiceChannel> {
        FileServiceClient::new(self.content.clone())
    }

    fn folders(&self) -> FolderServiceClient<ServiceChannel> {
        FolderServiceClient::new(self.content.clone())
    }

    /// Every live file with its content, by path; several of one path in the order of their making.
    async fn tree(&self) -> BTreeMap<String, Vec<String>> {
        let listed = self.files().list_files(self.request(content::ListFilesRequest::default())).await;
        let mut files = listed.unwrap().into_inner().files;
        files.sort_by(|one, other| one.id.cmp(&other.id));
        let mut tree: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for file in files {
            let found =
                self.files().get_file(self.request(content::GetFileRequest { file_id: file.id })).await;
            let found = found.unwrap().into_inner().file.unwrap();
            tree.entry(found.path).or_default().push(found.content.unwrap());
        }
        tree
    }

    async fn folder_paths(&self) -> Vec<String> {
        let listed = self.folders().list_folders(self.request(content::ListFoldersRequest::default())).await;
        let mut paths: Vec<_> =
            listed.unwrap().into_inner().folders.into_iter().map(|folder| folder.path).collect();
        paths.sort();
        paths
    }

    async fn file(&self, path: &str) -> File {
        let listed = self.files().list_files(self.request(content::ListFilesRequest::default())).await;
        listed.unwrap().into_inner().files.into_iter().find(|file| file.path == path).unwrap()
    }

    async fn create(&self, name: &str, text: &str, folder_id: Option<String>) -> File {
        let request = self.request(content::CreateFileRequest {
            name: name.into(),
            content: text.into(),
            file_type: content::FileType::Text.into(),
            folder_id,
            ..Default::default()
        });
        self.files().create_file(request).await.unwrap().into_inner().file.unwrap()
    }

    async fn edit(&self, path: &str, text: &str) {
        let file_id = self.file(path).await.id;
        let update_mask = Some(FieldMask { paths: vec!["content".into()] });
        let content = text.to_owned();
        let update = content::UpdateFileRequest { file_id, content, update_mask, ..Default::default() };
        self.files().update_file(self.request(update)).await.unwrap();
    }

    async fn trash(&self, path: &str) {
        let file_id = self.file(path).await.id;
        self.files().delete_file(self.request(content::DeleteFileRequest { file_id })).await.unwrap();
    }

    /// What the doctor finds.
    async fn faults(&self) -> Vec<String> {
        let found = crate::doctor::examine_open(&self.service.context().db, &|_| {}).await.unwrap();
        found.iter().map(ToString::to_string).collect()
    }
}

fn draft(documents: &[(&str, &str)]) -> Draft {
    let sent = |(path, content): &(&str, &str)| Sent {
        path: (*path).into(),
        content: (*content).into(),
        ..Sent::default()
    };
    Draft { name: "docs".into(), documents: documents.iter().map(sent).collect(), ..Draft::default() }
}

fn pruning(documents: &[(&str, &str)]) -> Draft {
    Draft { prune: true, ..draft(documents) }
}

fn tree(files: &[(&str, &str)]) -> BTreeMap<String, Vec<String>> {
    files.iter().map(|(path, content)| ((*path).to_owned(), vec![(*content).to_owned()])).collect()
}

/// Created, updated, skipped, conflicts, pruned.
fn counted(counters: Counters) -> [u64; 5] {
    [counters.created, counters.updated, counters.skipped, counters.conflicts, counters.pruned]
}

fn actions(shown: &RunView) -> Vec<(&str, &str)> {
    shown.results.iter().map(|result| (result.path.as_str(), result.action.as_str())).collect()
}

fn codes(shown: &RunView) -> Vec<(&str, &str)> {
    shown.warnings.iter().map(|warning| (warning.path.as_str(), warning.code.as_str())).collect()
}

fn reason<T: std::fmt::Debug>(result: Result<T, Error>) -> Reason {
    Problem::from(result.unwrap_err()).reason
}
