//! The tests of this service, on every engine.

mod activity_model;
mod activity_rules;
mod activity_undo;
mod asset_rules;
mod assets_over_grpc;
mod backlink_rules;
mod batch_records;
mod batch_rules;
mod bodied_rules;
mod change_rules;
mod columns_follow;
mod columns_model;
mod databases_over_grpc;
mod doctor_of_index;
mod doctor_of_records;
mod doctor_rules;
mod document_rules;
mod file_rules;
mod folder_rules;
mod found_names;
mod item_changes;
mod layers;
mod many_files;
mod memories_over_grpc;
mod memory_databases;
mod memory_rules;
mod memory_trash;
mod memory_versions;
mod names_follow;
mod names_model;
mod over_grpc;
mod overview_rules;
mod past_model;
mod query_model;
mod races;
mod record_groups;
mod record_model;
mod record_races;
mod record_rules;
mod record_schema;
mod record_tables;
mod record_trash;
mod removal;
mod scale;
mod source_members;
mod statement_counts;
mod tables;
mod tag_rules;
mod trash_over_grpc;
mod trash_rules;
mod tree_model;
mod usage_rules;
mod version_rules;
mod workspace_tree;
mod workspace_tree_over_grpc;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cairn_chassis::clock::{Clock, SystemClock};
use cairn_chassis::entropy::SeededEntropy;
use cairn_chassis::feed::{Change, Entry, Feed};
use cairn_chassis::identity::Scope;
use cairn_chassis::ids::IdSource;
use cairn_chassis::lifecycle::Suspensions;
use cairn_chassis::limits::PlanLimits;
use cairn_chassis::shared_storage::SharedStorage;
use cairn_chassis::sql::{self, Db, plans};
use cairn_chassis::testing::{TestDb, engines};
use cairn_proto::ids::{FileId, FolderId, WorkspaceId};
use uuid::Uuid;

use crate::columns::SnapshotCache;
use crate::context::Context;
use crate::documents::Documents;
use crate::files::{self, Files, InFolder};
use crate::folders::{self, Folders};
use crate::model::{File, FileType, Folder, PAGES, PageRequest};
use crate::scope::Caller;
use crate::service::Config;
use crate::{AssetLocation, Error, store};

/// The rules on one engine.
struct Bench {
    test: TestDb,
    context: Context,
    files: Files,
    folders: Folders,
    documents: Documents,
    /// A caller of the whole workspace.
    caller: Caller,
}

const COLUMNS_BYTES: usize = 64 << 20;
const NAMES_BYTES: usize = 16 << 20;

/// A seed for each bench, so that benches never share an id.
static SEED: AtomicU64 = AtomicU64::new(1);

async fn benches() -> Vec<Bench> {
    let mut benches = Vec::new();
    for test in engines().await {
        let db = open(&test).await;
        benches.push(Bench::new(test, db));
    }
    benches
}

async fn open(test: &TestDb) -> Db {
    test.open(store::SCHEMA, store::MIGRATIONS).await.unwrap()
}

/// The configuration of the service on that database, with its assets in memory.
fn config(test: &TestDb) -> Config {
    Config {
        storage: test.config.clone(),
        trash_retention: None,
        assets: AssetLocation::Memory,
        limits: PlanLimits::default(),
        columns_bytes: COLUMNS_BYTES,
        names_bytes: NAMES_BYTES,
    }
}

fn caller(workspace: u128) -> Caller {
    let workspace = WorkspaceId(Uuid::from_u128(workspace));
    Caller { may_publish: true, plan: Some("selfhosted".to_owned()), ..Caller::anybody(workspace) }
}

impl Bench {
    fn new(test: TestDb, db: Db) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let entropy = Arc::new(SeededEntropy::new(SEED.fetch_add(1, Ordering::Relaxed)));
        let ids = IdSource::new(Arc::clone(&clock), entropy);
        let suspensions = Suspensions::in_memory(Arc::clone(&clock));
        let feed = Feed::new(db.clone(), Arc::clone(&clock));
        let (limits, outside, database_cache) = Default::default();
        let storage = SharedStorage::new(Arc::clone(&clock));
        let (columns, names) = (SnapshotCache::new(COLUMNS_BYTES), SnapshotCache::new(NAMES_BYTES));
        let context = Context {
            feed,
            suspensions,
            db,
            clock,
            ids,
            limits,
            storage,
            outside,
            columns,
            names,
            database_cache,
        };
        Self {
            test,
            files: Files::new(context.clone()),
            folders: Folders::new(context.clone()),
            documents: Documents::new(context.clone()),
            context,
            caller: caller(1),
        }
    }

    /// The context of its rules with another clock.
    fn by_clock(&self, clock: Arc<dyn Clock>) -> Context {
        let feed = Feed::new(self.context.db.clone(), Arc::clone(&clock));
        Context { feed, clock, ..self.context.clone() }
    }

    fn engine(&self) -> &'static str {
        self.test.engine
    }

    /// A caller for the same workspace with a token of these folders.
    fn scoped(&self, folders: &[FolderId]) -> Caller {
        Caller { scope: Scope::Folders(folders.into()), ..self.caller.clone() }
    }

    async fn folder(&self, name: &str, parent: Option<FolderId>) -> Folder {
        self.folders.create(&self.caller, folder_draft(name, parent)).await.unwrap().item
    }

    async fn file(&self, name: &str, folder: Option<FolderId>) -> File {
        self.files.create(&self.caller, draft(name, folder)).await.unwrap().item
    }

    async fn changes(&self) -> Vec<Change> {
        self.context.feed.read(self.caller.workspace, 0, 0).await.unwrap().changes
    }

    async fn entries_after(&self, position: u64) -> Vec<Entry> {
        let page = self.context.feed.read(self.caller.workspace, position, 0).await.unwrap();
        page.changes.into_iter().map(|change| change.entry).collect()
    }

    async fn names(&self, caller: &Caller, folder: Option<InFolder>) -> Vec<String> {
        let page = self.files.list(caller, folder, first_page()).await.unwrap();
        assert_eq!(page.total, page.items.len() as u64);
        page.items.into_iter().map(|file| file.name).collect()
    }

    async fn folder_paths(&self, caller: &Caller, parent: Option<Option<FolderId>>) -> Vec<String> {
        let parent = parent.map(|parent| parent.map(|id| id.to_string()));
        let page = self.folders.list(caller, parent, first_page()).await.unwrap();
        page.items.into_iter().map(|folder| folder.path).collect()
    }
}

fn first_page() -> PageRequest {
    PageRequest::new(PAGES, 0, "").unwrap()
}

fn draft(name: &str, folder: Option<FolderId>) -> files::FileDraft {
    files::FileDraft {
        name: name.to_owned(),
        content: format!("content of {name}"),
        file_type: Some(FileType::Markdown),
        folder_id: folder.map(|id| id.to_string()),
        tags: Vec::new(),
        description: None,
    }
}

fn folder_draft(name: &str, parent: Option<FolderId>) -> folders::FolderDraft {
    folders::FolderDraft { name: name.to_owned(), parent_id: parent.map(|id| id.to_string()) }
}

fn move_to(parent: Option<FolderId>) -> folders::FolderPatch {
    folders::FolderPatch {
        parent_id: Some(parent.map(|id| id.to_string())),
        ..folders::FolderPatch::default()
    }
}

fn in_folder(folder: Option<FolderId>, is_recursive: bool) -> Option<InFolder> {
    Some(InFolder { folder_id: folder.map(|id| id.to_string()), is_recursive })
}

#[track_caller]
fn assert_not_found<T: std::fmt::Debug>(result: Result<T, Error>, kind: &str) {
    match result {
        Err(Error::NotFound { kind: found, .. }) => assert_eq!(found, kind),
        other => panic!("expected no {kind}, got {other:?}"),
    }
}

#[track_caller]
fn assert_out_of_scope<T: std::fmt::Debug>(result: Result<T, Error>) {
    assert!(matches!(result, Err(Error::OutOfScope(_))), "expected out of scope, got {result:?}");
}

#[track_caller]
fn violations<T: std::fmt::Debug>(result: Result<T, Error>) -> Vec<(String, String)> {
    match result {
        Err(Error::Invalid(violations)) => violations.into_iter().map(|v| (v.path, v.code)).collect(),
        other => panic!("expected violations, got {other:?}"),
    }
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(path, code)| ((*path).to_owned(), (*code).to_owned())).collect()
}

fn missing_file() -> String {
    FileId(Uuid::from_u128(99)).to_string()
}

fn missing_folder() -> FolderId {
    FolderId(Uuid::from_u128(98))
}

#[tokio::test]
async fn every_statement_prepares() {
    for bench in benches().await {
        sql::prepare_all(&bench.context.db, &store::statements()).await.unwrap();
    }
}

/// Parts of statements that may scan a table or a workspace.
const READ_ALL: &[&str] = &[
    // Few rows, read now and then.
    "FROM workspace_states WHERE suspended",
    "FROM workspace_states WHERE changed_at < $1",
    // The removal of a workspace takes batches in any order.
    " WHERE workspace_id = $1 LIMIT $2",
    // Counts and sums.
    "SELECT COUNT(*) FROM assets WHERE",
    "SELECT COUNT(*) FROM databases WHERE",
    "SELECT COUNT(*) FROM files WHERE",
    "SELECT COUNT(*) FROM folders WHERE",
    "SELECT COUNT(*) FROM memories WHERE",
    "SELECT COUNT(*) FROM trash WHERE",
    "SUM(size_bytes)",
    // A substring search of names compares all of them, and so do filters by time and tags.
    "COUNT(*) OVER () AS total",
    ") AS all_names",
    "updated_at > $2 AND",
    // A workspace has few databases and memories, and few principals.
    "FROM databases WHERE workspace_id = $1 AND deleted_at IS NOT NULL",
    "FROM memories WHERE workspace_id = $1",
    "WITH RECURSIVE actors",
    // PostgreSQL cannot estimate the length of a page after a name, and overestimates the folders above it.
    "WITH RECURSIVE page AS (SELECT * FROM",
    // A backward scan of the primary key.
    "FROM feed_changes WHERE workspace_id = $1 ORDER BY position DESC LIMIT $2",
    // The doctor, a backup and the comparison with an index read everything.
    "SELECT c.workspace_id, c.item_id, c.kind, c.op, c.position",
    "SELECT workspace_id, object_id, size_bytes FROM asset_objects",
    "FROM memory_members WHERE query IS NOT NULL",
];

#[tokio::test]
async fn no_statement_reads_all_to_find_some() {
    let found =
        plans::findings(store::SCHEMA, store::MIGRATIONS, &store::statements(), READ_ALL).await.unwrap();
    assert!(found.is_empty(), "{found:#?}");
}
