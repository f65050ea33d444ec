//! Simulation of sync runs and their rollbacks (docs/adr/0101), over a real svc-content: two processes whose clocks differ; workers
//! that stand still before a call has an effect or before they hear of it, are refused there, are lost, or come back when
//! somebody else has their run; people who edit, make and delete files meanwhile, cancel, start again and roll back.
//!
//! Whatever happened: what people wrote is there as they left it. A run that is completed has each document of its manifest
//! there once, as the manifest has it, but for what people touched. A rollback leaves what was there before. And a worker that
//! lost its run writes nothing about it.

mod crew;
mod gate;
mod imports;
mod lost;
mod people;
mod simulator;

use std::path::Path;
use std::pin::Pin;

use cairn_chassis::bodies::content_hash;
use cairn_chassis::testing::simulation::{self, World};
use cairn_proto::ids::SyncRunId;

use self::gate::Gate;
use self::simulator::Simulator;
use super::*;
use crate::context::Context;
use crate::model::{Phase, Run, SyncAction};
use crate::runs::Runner;

const PATHS: [&str; 5] = ["a.md", "b.md", "d/c.md", "d/e.md", "d/f/g.md"];
/// A folder in memory, where the system has one.
const IN_MEMORY: &str = "/dev/shm";
const CONTENT: &str = "content.db";

#[test]
fn runs_end_as_if_nobody_had_disturbed_them() {
    let template = template();
    simulation::run("runs of syncs", 12, |world| simulation::block_on(simulate(world, template.path())));
}

#[tokio::test]
async fn what_a_cancelled_run_wrote_is_not_made_once_more() {
    for bench in benches().await {
        let documents = [("a", "1"), ("b", "1")];
        let previewed = bench.preview(draft(&documents)).await.unwrap();
        bench.start(&previewed).await.unwrap();
        // Two identities, and the batch: it is written, and nobody hears of it.
        let (mut worker, gate) = bench.worker().await;
        gate.open_for(3, false);
        stop(&mut worker, &gate).await;
        drop(worker);
        assert_eq!(bench.tree().await, tree(&[("/a", "1"), ("/b", "1")]), "{}", bench.engine);
        let context = bench.service.context();
        store::runs::expire_all_leases(&context.db, context.clock.now()).await.unwrap();
        bench.syncs.cancel(&bench.caller, &previewed.run.id.to_string()).await.unwrap();
        bench.work().await;
        assert_eq!(bench.get(&previewed).await.run.state, RunStatus::Cancelled);
        let next = bench.sync(draft(&documents)).await;
        assert_eq!(counted(next.run.counters), [0, 0, 2, 0, 0], "{}", bench.engine);
        assert_eq!(bench.tree().await, tree(&[("/a", "1"), ("/b", "1")]));
        assert_eq!(bench.faults().await, Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_call_that_arrives_late_makes_nothing_twice() {
    for bench in benches().await {
        let previewed = bench.preview(draft(&[("a", "1"), ("d/b", "1")])).await.unwrap();
        bench.start(&previewed).await.unwrap();
        // Two identities and the folder that is looked for: the batch is on its way.
        let (mut worker, gate) = bench.worker().await;
        gate.open_for(4, false);
        stop(&mut worker, &gate).await;
        assert_eq!(bench.tree().await, tree(&[]), "{}", bench.engine);
        let context = bench.service.context();
        store::runs::expire_all_leases(&context.db, context.clock.now()).await.unwrap();
        bench.work().await;
        let done = bench.get(&previewed).await;
        assert_eq!((done.run.state, counted(done.run.counters)), (RunStatus::Completed, [2, 0, 0, 0, 0]));
        gate.open_for(u64::MAX, false);
        worker.await;
        assert_eq!(bench.tree().await, tree(&[("/a", "1"), ("/d/b", "1")]), "{}", bench.engine);
        assert_eq!(bench.folder_paths().await, ["/d"]);
        assert_eq!(bench.get(&previewed).await.run, done.run);
        assert_eq!(bench.faults().await, Vec::<String>::new());
    }
}

type Working = Pin<Box<dyn Future<Output = ()>>>;

/// Has a worker go on to its gate.
async fn stop(worker: &mut Working, gate: &Gate) {
    tokio::select! {
        biased;
        () = worker => panic!("it came to its end"),
        () = gate.stopped() => {}
    }
}

impl Bench {
    /// A worker of another process that has the run that is due, and its gate.
    async fn worker(&self) -> (Working, Arc<Gate>) {
        let gate = Arc::new(Gate::default());
        let context = self.service.context().clone();
        let runner = Runner::new(Context { content: gate.guard(&self.content, &self.rights), ..context });
        let now = self.service.context().clock.now();
        let run = store::runs::claimable(&self.service.context().db, now, 1).await.unwrap().pop().unwrap();
        let run = runner.claim(run).await.unwrap().unwrap();
        (Box::pin(async move { runner.perform(run, &CancellationToken::new()).await }), gate)
    }
}

/// A folder with the tables of svc-content, created once: that takes longer than one seed's simulation.
fn template() -> TempDir {
    let template = folder();
    simulation::block_on(async {
        let issuer = Issuer::new().unwrap();
        let storage = sql::Config::sqlite(template.path().join(CONTENT));
        let config = config_of_content(storage, &template);
        cairn_content::Service::open(config, issuer.ambient()).await.unwrap().close().await;
    });
    template
}

fn folder() -> TempDir {
    let is_there = Path::new(IN_MEMORY).is_dir();
    if is_there { TempDir::new_in(IN_MEMORY).unwrap() } else { TempDir::new().unwrap() }
}

async fn simulate(world: &mut World, template: &Path) {
    let simulator = Box::pin(Simulator::start(world, template)).await;
    let mut simulation = SyncSimulation { simulator, directory: BTreeMap::new(), latest: None };
    for _ in 0..simulation.simulator.world.between(15, 35) {
        Box::pin(simulation.step()).await;
    }
    Box::pin(simulation.end()).await;
}

/// The run that was started last.
struct Latest {
    id: SyncRunId,
    /// The hash of each document, by path.
    manifest: BTreeMap<String, String>,
    prunes: bool,
    /// The files when it was started first.
    before: Vec<File>,
}

/// A directory that is synced with one workspace.
struct SyncSimulation<'a> {
    simulator: Simulator<'a>,
    directory: BTreeMap<String, String>,
    latest: Option<Latest>,
}

impl SyncSimulation<'_> {
    async fn step(&mut self) {
        match self.simulator.world.below(16) {
            0..=1 => self.start().await,
            2 => self.start_again().await,
            3 => self.roll_back().await,
            4 => self.cancel().await,
            5 => self.simulator.edit().await,
            6 => self.simulator.make_or_delete().await,
            7..=12 => self.work().await,
            13 => self.simulator.crew.disturb(self.simulator.world, &self.simulator.bench),
            _ => self.simulator.crew.pass(self.simulator.world),
        }
    }

    /// Nobody disturbs any more: what is under way ends, and what is sent then is there, each document once.
    async fn end(&mut self) {
        self.simulator.drain().await;
        Box::pin(self.check()).await;
        // The first of them finds out what interrupted runs wrote: it may need a preview that knows of it.
        for _ in 0..2 {
            Box::pin(self.send(true)).await;
            self.simulator.bench.work().await;
            let state = self.run().await.state;
            assert!(state.is_completed(), "{state:?}");
            Box::pin(self.check()).await;
        }
        // The same again finds nothing to do.
        Box::pin(self.send(true)).await;
        self.simulator.bench.work().await;
        let [created, updated, _, _, pruned] = counted(self.run().await.counters);
        assert_eq!([created, updated, pruned], [0, 0, 0], "the same again");
        assert_eq!(self.simulator.bench.faults().await, Vec::<String>::new());
    }

    async fn run(&self) -> Run {
        self.simulator.run().await.unwrap()
    }

    /// Somebody changes the directory and sends it.
    async fn start(&mut self) {
        if self.simulator.is_busy().await {
            return;
        }
        let world = &mut *self.simulator.world;
        for _ in 0..world.between(1, 3) {
            let path = PATHS[world.place_in(PATHS.len())].to_owned();
            if world.one_in(4) {
                self.directory.remove(&path);
            } else {
                let text = format!("{path} {}", world.below(3));
                self.directory.insert(path, text);
            }
        }
        let prunes = world.one_in(2);
        world.note(format_args!("a run of {:?}, prunes: {prunes}", self.directory));
        Box::pin(self.send(prunes)).await;
    }

    async fn send(&mut self, prunes: bool) {
        let bench = &self.simulator.bench;
        let before = bench.live().await;
        let documents: Vec<(&str, &str)> =
            self.directory.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let sent = Draft { prune: prunes, ..draft(&documents) };
        let shown = bench.preview(sent).await.unwrap();
        bench.start(&shown).await.unwrap();
        let hashed = |(path, text): (&String, &String)| (path.clone(), content_hash(text));
        let manifest = self.directory.iter().map(hashed).collect();
        let id = shown.run.id;
        self.simulator.started(id);
        self.latest = Some(Latest { id, manifest, prunes, before });
    }

    /// Somebody starts again what ended early.
    async fn start_again(&mut self) {
        let Some(id) = self.id() else { return };
        let bench = &self.simulator.bench;
        let is_started = bench.syncs.start(&bench.caller, &id).await.is_ok();
        self.simulator.note_queued("started again", is_started);
    }

    async fn roll_back(&mut self) {
        let Some(id) = self.id() else { return };
        let bench = &self.simulator.bench;
        let is_queued = bench.syncs.roll_back(&bench.caller, &id).await.is_ok();
        self.simulator.note_queued("rolled back", is_queued);
    }

    async fn cancel(&mut self) {
        let Some(id) = self.id() else { return };
        let bench = &self.simulator.bench;
        let is_accepted = bench.syncs.cancel(&bench.caller, &id).await.is_ok();
        self.simulator.world.note(format_args!("cancelled: {is_accepted}"));
    }

    fn id(&self) -> Option<String> {
        self.latest.as_ref().map(|latest| latest.id.to_string())
    }

    async fn work(&mut self) {
        if self.simulator.work().await {
            Box::pin(self.check()).await;
        }
    }

    /// What must hold whenever a run has ended or paused.
    async fn check(&self) {
        let files = self.simulator.checked_files().await;
        let Some(latest) = &self.latest else { return };
        let run = self.run().await;
        match (run.state, run.phase) {
            (RunStatus::RolledBack, _) => self.check_rolled_back(latest, &files),
            (state, Phase::Sync) if state.is_completed() => {
                self.check_completed(latest, &run, &files).await;
            }
            _ => {}
        }
    }

    /// Each document is there as the manifest has it, and the report says so.
    async fn check_completed(&self, latest: &Latest, run: &Run, files: &[File]) {
        let Simulator { bench, people, .. } = &self.simulator;
        let shown = bench.syncs.get(&bench.caller, &latest.id.to_string()).await.unwrap();
        // The run found out what an earlier one had left unsettled, which its preview did not know.
        let is_outdated = |(_, code): &(&str, &str)| *code == "preview_outdated";
        let outdated: Vec<&str> =
            codes(&shown).into_iter().filter(is_outdated).map(|(path, _)| path).collect();
        let counters = run.counters;
        let sum: u64 = counted(counters).iter().sum();
        let told = shown.results.len() as u64;
        assert_eq!(
            (sum, counters.processed, told),
            (run.total, run.total, run.total),
            "{:#?}",
            shown.results
        );
        for outcome in &shown.results {
            let id = outcome.file.map(|id| id.to_string()).unwrap_or_default();
            let found = files.iter().find(|file| file.id == id);
            match outcome.action {
                SyncAction::Created | SyncAction::Updated | SyncAction::Skipped => {
                    let there = found.map(|file| (file.path.clone(), Some(&file.content_hash)));
                    let wanted = (format!("/{}", outcome.path), latest.manifest.get(&outcome.path));
                    assert!(people.has_touched(&id) || there == Some(wanted), "{outcome:?}: {found:?}");
                }
                SyncAction::Conflict => {
                    let is_outdated = outdated.contains(&outcome.path.as_str());
                    assert!(is_outdated || people.has_touched(&id), "{outcome:?}: {found:?}");
                }
                SyncAction::Pruned => assert_eq!(found, None, "{outcome:?}"),
                SyncAction::Failed => panic!("{outcome:?}"),
            }
        }
        let known: Vec<&String> = shown.results.iter().map(|outcome| &outcome.path).collect();
        for path in latest.manifest.keys() {
            assert!(known.contains(&path), "nothing is told of {path}");
        }
        let is_theirs = |file: &&File| people.has_touched(&file.id);
        for file in files.iter().filter(|file| latest.prunes && !is_theirs(file)) {
            let path = file.path.trim_start_matches('/');
            assert!(latest.manifest.contains_key(path), "{path} is not pruned");
        }
    }

    /// The files from before are there again, except those that people touched.
    fn check_rolled_back(&self, latest: &Latest, files: &[File]) {
        let before = self.simulator.untouched(&latest.before);
        assert_eq!(self.simulator.untouched(files), before, "what a rollback leaves");
    }
}
