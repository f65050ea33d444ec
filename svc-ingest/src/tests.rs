//! The contract of this service, on every engine.

mod documents_over_grpc;
mod file_rules;
mod ingest_races;
mod ingest_rules;
mod layers;
mod live_connections;
mod live_rules;
mod removal;
mod retrieval_rules;
mod runs;
mod source_rules;
mod statements;
mod usage_rules;
mod webhooks;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cairn_chassis::clock::{Clock, SystemClock};
use cairn_chassis::entropy::SeededEntropy;
use cairn_chassis::feed::{Entry, Feed};
use cairn_chassis::identity::Scope;
use cairn_chassis::ids::IdSource;
use cairn_chassis::lifecycle::Suspensions;
use cairn_chassis::limits::PlanLimits;
use cairn_chassis::outbound::Guard;
use cairn_chassis::shared_storage::SharedStorage;
use cairn_chassis::sql::Db;
use cairn_chassis::testing::{TestDb, engines};
use cairn_extract::Extractor;
use cairn_proto::ids::{FolderId, WorkspaceId};
use cairn_providers::Reach;
use tokio::sync::Notify;
use uuid::Uuid;

use crate::context::Context;
use crate::documents::Documents;
use crate::extraction::Extractions;
use crate::indexing::Indexing;
use crate::ingest::{Accepted, Draft, Ingests, TextDraft};
use crate::scope::Caller;
use crate::service::Config;
use crate::tree::Trees;
use crate::usage::Accounts;
use crate::{Error, store};

/// One engine with the rules on it.
struct Bench {
    test: TestDb,
    context: Context,
    ingests: Ingests,
    documents: Documents,
    indexing: Indexing,
    trees: Trees,
    extractions: Extractions,
    accounts: Accounts,
    /// Of the whole of one workspace.
    caller: Caller,
}

/// Seeds differ, so that benches never share an id.
static SEED: AtomicU64 = AtomicU64::new(1);

async fn benches() -> Vec<Bench> {
    let mut benches = Vec::new();
    for test in engines().await {
        let db = test.open(store::SCHEMA, store::MIGRATIONS).await.unwrap();
        benches.push(Bench::new(test, db).await);
    }
    benches
}

fn config(test: &TestDb) -> Config {
    let guard = Guard::new(&[]).unwrap();
    let reach = Reach::new(guard, &[]);
    Config {
        storage: test.config.clone(),
        limits: PlanLimits::default(),
        reach,
        keyring: None,
        provider_bodies: 16 << 20,
        webhook_waits: Vec::new(),
    }
}

fn workspace(number: u128) -> WorkspaceId {
    WorkspaceId(Uuid::from_u128(number))
}

fn caller(number: u128) -> Caller {
    Caller::of_test(workspace(number), Scope::All, "selfhosted")
}

fn bound_to_folders(number: u128) -> Caller {
    let folders = [FolderId(Uuid::from_u128(9))];
    Caller::of_test(workspace(number), Scope::Folders(folders.into()), "selfhosted")
}

fn text(key: &str, title: &str, content: &str) -> TextDraft {
    let draft = Draft { idempotency_key: key.into(), title: title.into(), ..Draft::default() };
    TextDraft { draft, content: content.into(), ..TextDraft::default() }
}

impl Bench {
    async fn new(test: TestDb, db: Db) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let entropy = Arc::new(SeededEntropy::new(SEED.fetch_add(1, Ordering::Relaxed)));
        let ids = IdSource::new(Arc::clone(&clock), entropy);
        let feed = Feed::new(db.clone(), Arc::clone(&clock));
        let suspensions = Suspensions::open(db.clone(), Arc::clone(&clock)).await.unwrap();
        let limits = Arc::new(PlanLimits::with_overrides("small=1:1:2").unwrap());
        let arrivals = Arc::new(Notify::new());
        let storage = SharedStorage::new(Arc::clone(&clock));
        let context = Context { db, feed, suspensions, clock, ids, limits, storage, arrivals };
        Self {
            test,
            ingests: Ingests::new(context.clone()),
            documents: Documents::new(context.clone()),
            indexing: Indexing::new(context.clone()),
            trees: Trees::new(context.clone()),
            extractions: Extractions::new(context.clone(), Extractor::in_this_process()),
            accounts: Accounts::new(context.clone()),
            context,
            caller: caller(1),
        }
    }

    async fn take(&self, key: &str, title: &str, content: &str) -> Result<Accepted, Error> {
        self.ingests.text(&self.caller, text(key, title, content)).await
    }

    /// What the feed of the caller's workspace tells after a position.
    async fn told(&self, after: u64) -> Vec<Entry> {
        let page = self.context.feed.read(self.caller.workspace, after, 0).await.unwrap();
        page.changes.into_iter().map(|change| change.entry).collect()
    }

    /// What the doctor finds.
    async fn faults(&self) -> Vec<String> {
        let found = crate::doctor::examine_open(&self.context.db, &|_| {}).await.unwrap();
        found.iter().map(ToString::to_string).collect()
    }
}
