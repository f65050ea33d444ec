//! Runs on a scripted provider: the twelve invariants of runs, on every engine, and with workers that are lost anywhere.

mod absence;
mod faults;
mod kills;
mod retries;
mod room;
mod simulation;
mod steps;
mod wishes;
mod workers;

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Polling, Poll};
use std::time::Duration;

use cairn_chassis::clock::{Clock, ManualClock, Timestamp};
use cairn_chassis::entropy::{Entropy, SeededEntropy};
use cairn_chassis::feed::{Feed, Op};
use cairn_chassis::ids::IdSource;
use cairn_chassis::outbound::Guard;
use cairn_chassis::sealing::Keyring;
use cairn_chassis::sql::Db;
use cairn_chassis::status::Violation;
use cairn_extract::Extractor;
use cairn_proto::domain::{SourceMode, SourceRunStatus};
use cairn_proto::ids::{DocumentId, SourceId, WorkspaceId};
use cairn_providers::testing::Shelf;
use cairn_providers::{Changes, Deletions, Listing, Provider, ProviderKind};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{Bench, benches, caller};
use crate::context::Context;
use crate::live::Live;
use crate::model::{PageRequest, Run, SOURCE_PAGES, SourceDetails, SourceView};
use crate::runs::{Connect, Runner};
use crate::scope::Caller;
use crate::sources::{Draft, Sources};
use crate::store;

/// The first page of what belongs to sources.
pub(super) fn first_page() -> PageRequest {
    PageRequest::new(SOURCE_PAGES, 0, "").unwrap()
}

/// Connects every source to one shelf.
#[derive(Debug)]
struct Shelves {
    shelf: Shelf,
    guard: Guard,
}

impl Connect for Shelves {
    fn modes(&self, _: ProviderKind) -> &'static [SourceMode] {
        &[SourceMode::Indexed, SourceMode::Catalog, SourceMode::Live]
    }

    fn connect(
        &self,
        _: ProviderKind,
        settings: &Value,
        _: Option<&Value>,
        _: Option<SourceMode>,
    ) -> Result<Box<dyn Provider>, Vec<Violation>> {
        if settings.get("url").is_some_and(Value::is_null) {
            return Err(vec![Violation::new("settings.url", "required", "say where")]);
        }
        Ok(self.shelf.provider())
    }

    fn guard(&self) -> &Guard {
        &self.guard
    }
}

/// One engine, a clock that stands, and a shelf.
pub(super) struct Stand {
    pub(super) bench: Bench,
    pub(super) clock: Arc<ManualClock>,
    pub(super) shelf: Shelf,
    pub(super) runner: Runner,
    pub(super) live: Live,
    pub(super) sources: Sources,
    pub(super) caller: Caller,
}

const HOUR: Duration = Duration::from_secs(60 * 60);
/// More than a worker has a run for.
const LEASE: Duration = Duration::from_secs(90);

pub(super) async fn stands(listing: Listing, changes: Changes, deletions: Deletions) -> Vec<Stand> {
    let mut stands = Vec::new();
    for bench in benches().await {
        stands.push(Stand::new(bench, Shelf::new(listing, changes, deletions)));
    }
    stands
}

/// A provider that lists everything and tells no changes.
pub(super) async fn listed() -> Vec<Stand> {
    stands(Listing::Exhaustive, Changes::None, Deletions::FromListing).await
}

/// A provider that tells every change.
async fn told() -> Vec<Stand> {
    stands(Listing::Exhaustive, Changes::Exact, Deletions::FromChanges).await
}

impl Stand {
    fn new(bench: Bench, shelf: Shelf) -> Self {
        let connect = Arc::new(Shelves { shelf: shelf.clone(), guard: Guard::new(&[]).unwrap() });
        Self::over(bench, shelf, connect)
    }

    fn over(bench: Bench, shelf: Shelf, connect: Arc<dyn Connect>) -> Self {
        let clock = Arc::new(ManualClock::new(Timestamp::from_seconds(1_800_000_000)));
        let shared: Arc<dyn Clock> = Arc::<ManualClock>::clone(&clock);
        let entropy: Arc<dyn Entropy> = Arc::new(SeededEntropy::new(7));
        let context = Context {
            feed: Feed::new(bench.context.db.clone(), Arc::clone(&shared)),
            ids: IdSource::new(Arc::clone(&shared), Arc::clone(&entropy)),
            clock: shared,
            ..bench.context.clone()
        };
        let ring = Some(Arc::new(Keyring::generate(entropy.as_ref())));
        let runner = Runner::new(context, connect, Extractor::in_this_process(), ring, entropy);
        let live = Live::new(runner.clone(), runner.extractor.clone(), 16 << 20);
        let sources = Sources::new(runner.clone(), live.clone());
        Self { bench, clock, shelf, runner, live, sources, caller: caller(1) }
    }

    /// The same storage and shelf in another process.
    pub(super) fn other_process(&self) -> Runner {
        let runner = self.runner.clone();
        let (context, connect) = (runner.context.clone(), Arc::clone(&runner.connect));
        Runner::new(context, connect, runner.extractor, runner.keyring, runner.entropy)
    }

    pub(super) async fn connect(&self, name: &str) -> SourceId {
        self.connect_as(name, None).await
    }

    pub(super) async fn connect_as(&self, name: &str, mode: Option<SourceMode>) -> SourceId {
        let shown = self.sources.connect(&self.caller, draft(name, mode)).await.unwrap();
        shown.source.id
    }

    /// Works until nothing is left to be done now.
    pub(super) async fn work(&self) {
        self.clock.advance(Duration::from_millis(10));
        work(&self.runner).await;
    }

    pub(super) async fn sync(&self, id: SourceId) -> Run {
        // Ids of runs sort by time.
        self.clock.advance(Duration::from_millis(10));
        self.sources.sync(&self.caller, &id.to_string(), false).await.unwrap();
        self.work().await;
        self.last(id).await
    }

    async fn sync_full(&self, id: SourceId) -> Run {
        // Ids of runs sort by time.
        self.clock.advance(Duration::from_millis(10));
        self.sources.sync(&self.caller, &id.to_string(), true).await.unwrap();
        self.work().await;
        self.last(id).await
    }

    async fn last(&self, id: SourceId) -> Run {
        let db = &self.runner.context.db;
        store::source_runs::last(db, self.caller.workspace, id).await.unwrap().unwrap()
    }

    pub(super) async fn shown(&self, id: SourceId) -> SourceDetails {
        self.sources.get(&self.caller, &id.to_string()).await.unwrap()
    }

    /// The documents of a source that everybody sees, with their texts.
    pub(super) async fn texts(&self, id: SourceId) -> BTreeMap<String, String> {
        let (db, workspace) = (&self.runner.context.db, self.caller.workspace);
        let mut texts = BTreeMap::new();
        for view in views(db, workspace).await {
            if view.source != id {
                continue;
            }
            let text = match &view.content_hash {
                None => String::new(),
                Some(hash) => {
                    let bodies = store::bodies::get_many(db, workspace, &[hash.as_str()]).await.unwrap();
                    bodies.into_iter().next().unwrap().into_text().unwrap()
                }
            };
            texts.insert(view.external_id, text);
        }
        texts
    }

    pub(super) async fn names(&self, id: SourceId) -> Vec<String> {
        self.texts(id).await.into_keys().collect()
    }

    /// What somebody who follows the feed holds: ids of the documents that it told last to be there.
    async fn followed(&self) -> Vec<String> {
        let mut held = BTreeMap::new();
        for entry in self.bench.told(0).await {
            held.insert(entry.item_id, entry.op == Op::Upsert);
        }
        held.into_iter().filter(|(_, is_there)| *is_there).map(|(id, _)| id).collect()
    }

    async fn visible(&self) -> Vec<String> {
        let (db, workspace) = (&self.runner.context.db, self.caller.workspace);
        let views = views(db, workspace).await;
        views.into_iter().map(|view| view.id.to_string()).collect()
    }

    /// Whatever happened: the doctor finds nothing, and who follows the feed holds what is there.
    pub(super) async fn assert_sound(&self, what: &str) {
        assert_eq!(self.bench.faults().await, Vec::<String>::new(), "{}: {what}", self.engine());
        let mut visible = self.visible().await;
        visible.sort();
        assert_eq!(self.followed().await, visible, "{}: {what}", self.engine());
    }

    pub(super) fn engine(&self) -> &'static str {
        self.bench.test.engine
    }
}

/// Does what is to be done now, in that process.
async fn work(runner: &Runner) {
    let db = &runner.context.db;
    loop {
        runner.queue_due().await.unwrap();
        let now = runner.context.clock.now();
        let runs = store::source_runs::claimable(db, now, 100).await.unwrap();
        if runs.is_empty() {
            return;
        }
        for run in runs {
            if let Some(run) = runner.claim(run).await.unwrap() {
                runner.perform(run, &CancellationToken::new()).await;
            }
        }
    }
}

pub(super) fn draft(name: &str, mode: Option<SourceMode>) -> Draft {
    Draft {
        name: name.to_owned(),
        provider: "folder".to_owned(),
        mode,
        settings: b"{}".to_vec(),
        every: Some("1h".to_owned()),
        ..Draft::default()
    }
}

/// A worker that is lost after so many polls: what it awaited then never happens to it.
struct Lost<F> {
    work: Pin<Box<F>>,
    polls: usize,
}

fn lost_after<F: Future<Output = ()>>(polls: usize, work: F) -> Lost<F> {
    Lost { work: Box::pin(work), polls }
}

impl<F: Future<Output = ()>> Future for Lost<F> {
    /// Whether the work was done before.
    type Output = bool;

    fn poll(mut self: Pin<&mut Self>, polling: &mut Polling<'_>) -> Poll<bool> {
        if self.polls == 0 {
            return Poll::Ready(false);
        }
        self.polls -= 1;
        self.work.as_mut().poll(polling).map(|()| true)
    }
}

fn is_over(run: &Run) -> bool {
    run.state.is_over()
}

const COMPLETED: SourceRunStatus = SourceRunStatus::Completed;
const WITH_WARNINGS: SourceRunStatus = SourceRunStatus::CompletedWithWarnings;

pub(super) async fn views(db: &Db, workspace: WorkspaceId) -> Vec<SourceView> {
    let mut tx = db.begin_read().await.unwrap();
    let nobody = DocumentId(uuid::Uuid::nil());
    let found = store::source_views::after(&mut tx, workspace, nobody, 10_000).await.unwrap();
    tx.rollback().await.unwrap();
    found
}
