//! What the simulations of syncs and of imports share: a workspace, the processes that work for it, and the people who change its
//! files meanwhile.

use std::path::Path;

use cairn_chassis::clock::{Clock, ManualClock, Timestamp};
use cairn_chassis::entropy::SeededEntropy;
use cairn_chassis::testing::simulation::World;
use cairn_proto::ids::SyncRunId;

use super::super::*;
use super::crew::Crew;
use super::people::People;
use super::{CONTENT, folder};
use crate::model::{Phase, Run};

/// Path and content hash of files, by id.
pub(super) type Snapshot = BTreeMap<String, (String, String)>;

/// One simulated workspace.
pub(super) struct Simulator<'a> {
    pub(super) world: &'a mut World,
    pub(super) bench: Bench,
    pub(super) crew: Crew,
    pub(super) people: People,
    /// The run that was started last.
    pub(super) latest: Option<SyncRunId>,
}

impl<'a> Simulator<'a> {
    /// A fresh workspace, with the tables of svc-content from the template.
    pub(super) async fn start(world: &'a mut World, template: &Path) -> Self {
        let folder = folder();
        std::fs::copy(template.join(CONTENT), folder.path().join(CONTENT)).unwrap();
        let issuer = Arc::new(Issuer::new().unwrap());
        let time = Arc::new(ManualClock::new(Timestamp::from_seconds(1_800_000_000)));
        let shared: Arc<dyn Clock> = Arc::<ManualClock>::clone(&time);
        let entropy = Arc::new(SeededEntropy::new(world.seed()));
        let ambient = Ambient::new(shared, entropy, issuer.ambient().verifier);
        let bench = Box::pin(Bench::of(TestDb::in_memory(), folder, issuer, ambient)).await;
        let crew = Crew::start(&bench, time);
        Self { world, bench, crew, people: People::default(), latest: None }
    }

    /// Remembers the run that was started.
    pub(super) const fn started(&mut self, run: SyncRunId) {
        self.crew.forbid_later_calls();
        self.latest = Some(run);
    }

    /// Notes what the service answered to somebody who wanted the latest run queued once more.
    pub(super) fn note_queued(&mut self, request: &str, is_queued: bool) {
        self.world.note(format_args!("{request}: {is_queued}"));
        if is_queued {
            self.crew.forbid_later_calls();
        }
    }

    /// The latest run as it is stored; `None` before the first.
    pub(super) async fn run(&self) -> Option<Run> {
        match self.latest {
            Some(id) => Some(self.bench.find(id).await),
            None => None,
        }
    }

    pub(super) async fn is_busy(&self) -> bool {
        self.run().await.is_some_and(|run| run.state.is_busy())
    }

    /// Ends all disturbance, and lets what is under way come to its end.
    pub(super) async fn drain(&mut self) {
        self.crew.leave();
        while self.is_busy().await {
            self.crew.expire();
            self.bench.work().await;
        }
    }

    /// Somebody edits a file.
    pub(super) async fn edit(&mut self) {
        let files = self.bench.live().await;
        let told = self.people.edit(&self.bench, self.world, &files).await;
        self.world.note(told);
    }

    /// Somebody creates or deletes a file. A deletion carries no version, so that of a run in progress may be taken for a person's:
    /// nobody deletes then.
    pub(super) async fn make_or_delete(&mut self) {
        let may_delete = self.run().await.is_none_or(|run| {
            run.state == RunStatus::RolledBack || run.phase == Phase::Sync && run.state.is_completed()
        });
        let files = self.bench.live().await;
        let told = if may_delete && self.world.one_in(2) {
            self.crew.forbid_later_calls();
            self.people.delete(&self.bench, self.world, &files).await
        } else {
            self.people.make(&self.bench, self.world, &files).await
        };
        self.world.note(told);
    }

    /// A process claims a run, or goes on with the one it has; whether a run has ended or paused.
    pub(super) async fn work(&mut self) -> bool {
        Box::pin(self.crew.work(self.world, &self.bench)).await
    }

    /// The live files, after a check that those of people are as they left them and that no run wrote one twice.
    pub(super) async fn checked_files(&self) -> Vec<File> {
        let files = self.bench.live().await;
        self.people.check(&files);
        let ours = files.iter().filter(|file| !self.people.has_made(&file.id));
        let mut paths: Vec<&str> = ours.map(|file| file.path.as_str()).collect();
        let count = paths.len();
        paths.dedup();
        assert_eq!(paths.len(), count, "something is there twice: {files:#?}");
        files
    }

    /// The files that nobody but runs has touched.
    pub(super) fn untouched(&self, files: &[File]) -> Snapshot {
        let ours = files.iter().filter(|file| !self.people.has_touched(&file.id));
        ours.map(|file| (file.id.clone(), (file.path.clone(), file.content_hash.clone()))).collect()
    }
}
