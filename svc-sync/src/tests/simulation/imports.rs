//! Simulation of imports and their rollbacks, as that of syncs: archives of one vault, of which notes come, change and go, and a
//! picture that one of them shows.
//!
//! Whatever happened: what people wrote is there as they left it. A run that is completed tells of each object of its archive once,
//! and has it there, but for what people touched; what it wrote links to where its targets are. A rollback leaves the files and the
//! attachments that were there before. And a worker that lost its run writes nothing about it.

use std::collections::BTreeSet;
use std::path::Path;

use cairn_chassis::testing::simulation::{self, World};
use cairn_proto::content::v1::asset_service_client::AssetServiceClient;
use cairn_proto::domain::ImportProvider;
use cairn_proto::ids::SyncRunId;

use super::super::imports::{archive, draft_of};
use super::super::*;
use super::simulator::Simulator;
use super::{stop, template};
use crate::imports::RunView as Import;
use crate::model::{Kind, Phase, Report, ReportAction, ReportItem, ReportPhase, Run};

/// The notes that a vault may have, and the name of the note that each leads to. The first is always there.
const NOTES: [(&str, &str); 4] = [("a.md", "b"), ("d/b.md", "c"), ("d/e/c.md", "a"), ("d/f.md", "b")];
/// The note that shows the picture.
const SHOWING: &str = "a.md";
const PICTURE: &str = "d/p.png";

#[test]
fn imports_end_as_if_nobody_had_disturbed_them() {
    let template = template();
    simulation::run("runs of imports", 6, |world| simulation::block_on(simulate(world, template.path())));
}

#[tokio::test]
async fn what_arrives_while_a_run_is_planned_anew_is_nobodys_edit() {
    for bench in benches().await {
        let [first, second] = [1, 2].map(Vault::of);
        bench.import(draft_of(ImportProvider::ObsidianZip), &first.archive()).await;
        let before = bench.tree().await;
        let started = bench.start_import(&second).await;
        // The first time it does what the archive asks for, then it takes that back: each time the batch is on its way.
        for state in [RunStatus::Completed, RunStatus::RolledBack] {
            let (mut late, late_gate) = bench.worker().await;
            // Two identities, and the states by which it plans.
            late_gate.open_for(4, false);
            stop(&mut late, &late_gate).await;
            let context = bench.service.context();
            store::runs::expire_all_leases(&context.db, context.clock.now()).await.unwrap();
            let (mut next, next_gate) = bench.worker().await;
            // An identity, and the states of what was noted.
            next_gate.open_for(3, false);
            stop(&mut next, &next_gate).await;
            late_gate.open_for(1, false);
            stop(&mut late, &late_gate).await;
            next_gate.open_for(u64::MAX, false);
            next.await;
            late_gate.open_for(u64::MAX, false);
            late.await;
            let done = bench.imports.get(&bench.caller, &started.run.id.to_string()).await.unwrap();
            assert_eq!(
                (done.run.state, counted(done.run.counters)),
                (state, [0, 4, 0, 0, 0]),
                "{}",
                bench.engine
            );
            assert_eq!(bench.faults().await, Vec::<String>::new());
            if state == RunStatus::Completed {
                bench.imports.roll_back(&bench.caller, &started.run.id.to_string()).await.unwrap();
            } else {
                assert!(done.warnings.is_empty(), "{}: {:?}", bench.engine, done.warnings);
            }
        }
        assert_eq!(bench.tree().await, before, "{}", bench.engine);
        // What it took back it remembers so.
        let again = bench.import(draft_of(ImportProvider::ObsidianZip), &second.archive()).await;
        assert_eq!(counted(again.run.counters), [0, 4, 0, 0, 0], "{}", bench.engine);
    }
}

#[tokio::test]
async fn what_arrives_after_a_run_was_planned_anew_and_cancelled_goes_with_its_rollback() {
    for bench in benches().await {
        let started = bench.start_import(&Vault::of(1)).await;
        let id = started.run.id.to_string();
        let (mut late, late_gate) = bench.worker().await;
        // Three identities and the folders: the notes are on their way.
        late_gate.open_for(5, false);
        stop(&mut late, &late_gate).await;
        assert_eq!(bench.tree().await, tree(&[]), "{}", bench.engine);
        let context = bench.service.context();
        store::runs::expire_all_leases(&context.db, context.clock.now()).await.unwrap();
        let (mut next, next_gate) = bench.worker().await;
        // An identity, and the states of what was noted: it has planned nothing yet.
        next_gate.open_for(2, false);
        stop(&mut next, &next_gate).await;
        bench.imports.cancel(&bench.caller, &id).await.unwrap();
        next_gate.open_for(u64::MAX, false);
        next.await;
        let cancelled = bench.imports.get(&bench.caller, &id).await.unwrap();
        assert_eq!(cancelled.run.state, RunStatus::Cancelled, "{}", bench.engine);
        late_gate.open_for(u64::MAX, false);
        late.await;
        assert_eq!(bench.tree().await.len(), 4, "{}", bench.engine);
        let back = bench.take_back(&cancelled).await;
        assert_eq!(back.run.state, RunStatus::RolledBack, "{}", bench.engine);
        assert_eq!((bench.tree().await, bench.folder_paths().await), (tree(&[]), vec![]));
        assert_eq!(bench.faults().await, Vec::<String>::new());
    }
}

async fn simulate(world: &mut World, template: &Path) {
    let simulator = Box::pin(Simulator::start(world, template)).await;
    let mut simulation = ImportSimulation { simulator, vault: Vault::default(), latest: None };
    for _ in 0..simulation.simulator.world.between(15, 35) {
        Box::pin(simulation.step()).await;
    }
    Box::pin(simulation.end()).await;
}

/// What a vault has: the version of each of its notes, and of its picture.
#[derive(Debug, Clone, Default)]
struct Vault {
    notes: BTreeMap<&'static str, u64>,
    picture: Option<u64>,
}

impl Vault {
    /// All notes in that version, without a picture.
    fn of(version: u64) -> Self {
        Self { notes: NOTES.iter().map(|(path, _)| (*path, version)).collect(), picture: None }
    }

    fn change(&mut self, world: &mut World) {
        for _ in 0..world.between(1, 3) {
            let (path, _) = NOTES[world.place_in(NOTES.len())];
            if world.one_in(4) {
                self.notes.remove(path);
            } else {
                self.notes.insert(path, world.below(3));
            }
        }
        self.notes.entry(NOTES[0].0).or_default();
        self.picture = [None, Some(1), Some(2)][world.place_in(3)];
    }

    fn archive(&self) -> Vec<u8> {
        let note = |(path, _): (&&'static str, &u64)| (format!("V/{path}"), self.text(path).into_bytes());
        let mut entries: Vec<(String, Vec<u8>)> = vec![("V/.obsidian/app.json".to_owned(), b"{}".to_vec())];
        entries.extend(self.notes.iter().map(note));
        let picture =
            |version: u64| (format!("V/{PICTURE}"), [b"\x89PNG".as_slice(), &version.to_be_bytes()].concat());
        entries.extend(self.picture.map(picture));
        let entries: Vec<(&str, &[u8])> =
            entries.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
        archive(&entries)
    }

    fn text(&self, path: &str) -> String {
        let shown = if path == SHOWING { " and ![[p.png]]" } else { "" };
        format!("{}\n\nIt leads to [[{}]]{shown}.\n", self.opening(path), target(path))
    }

    /// What the text of a note begins with.
    fn opening(&self, path: &str) -> String {
        format!("{path} in version {}.", self.notes[path])
    }

    fn paths(&self) -> BTreeSet<&str> {
        self.notes.keys().copied().chain(self.picture.map(|_| PICTURE)).collect()
    }
}

/// The name of the note that a note leads to.
fn target(path: &str) -> &'static str {
    NOTES.iter().find(|(note, _)| *note == path).unwrap().1
}

/// Every live file, and the ids of all attachments.
struct Inventory {
    files: Vec<File>,
    assets: BTreeSet<String>,
}

/// The run that was started last.
struct Latest {
    id: SyncRunId,
    vault: Vault,
    /// When it was started first.
    before: Inventory,
}

/// A vault that is imported into one workspace.
struct ImportSimulation<'a> {
    simulator: Simulator<'a>,
    vault: Vault,
    latest: Option<Latest>,
}

impl ImportSimulation<'_> {
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

    /// Nobody disturbs any more: what is under way ends, and what is imported then is there.
    async fn end(&mut self) {
        self.simulator.drain().await;
        Box::pin(self.check()).await;
        self.vault.change(self.simulator.world);
        Box::pin(self.send()).await;
        self.simulator.bench.work().await;
        let run = self.run().await;
        assert!(run.state.is_completed(), "{:?}: {:?}", run.state, run.error);
        Box::pin(self.check()).await;
        // The same again finds nothing to do.
        Box::pin(self.send()).await;
        self.simulator.bench.work().await;
        let [created, updated, _, _, pruned] = counted(self.run().await.counters);
        assert_eq!([created, updated, pruned], [0, 0, 0], "the same again");
        assert_eq!(self.simulator.bench.faults().await, Vec::<String>::new());
    }

    async fn run(&self) -> Run {
        self.simulator.run().await.unwrap()
    }

    fn id(&self) -> Option<String> {
        self.latest.as_ref().map(|latest| latest.id.to_string())
    }

    /// Somebody changes the vault and imports it.
    async fn start(&mut self) {
        if self.simulator.is_busy().await {
            return;
        }
        self.vault.change(self.simulator.world);
        self.simulator.world.note(format_args!("an import of {:?}", self.vault));
        Box::pin(self.send()).await;
    }

    async fn send(&mut self) {
        let bench = &self.simulator.bench;
        let before = bench.inventory().await;
        let id = Box::pin(bench.start_import(&self.vault)).await.run.id;
        self.simulator.started(id);
        self.latest = Some(Latest { id, vault: self.vault.clone(), before });
    }

    /// Somebody starts again what ended early.
    async fn start_again(&mut self) {
        let Some(id) = self.id() else { return };
        let bench = &self.simulator.bench;
        let is_started = bench.imports.start(&bench.caller, &id).await.is_ok();
        self.simulator.note_queued("started again", is_started);
    }

    async fn roll_back(&mut self) {
        let Some(id) = self.id() else { return };
        let bench = &self.simulator.bench;
        let is_queued = bench.imports.roll_back(&bench.caller, &id).await.is_ok();
        self.simulator.note_queued("rolled back", is_queued);
    }

    async fn cancel(&mut self) {
        let Some(id) = self.id() else { return };
        let bench = &self.simulator.bench;
        let is_accepted = bench.imports.cancel(&bench.caller, &id).await.is_ok();
        self.simulator.world.note(format_args!("cancelled: {is_accepted}"));
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
            (RunStatus::RolledBack, _) => self.check_rolled_back(latest, &files).await,
            (state, Phase::Sync) if state.is_completed() => {
                Box::pin(self.check_completed(latest, &run, &files)).await;
            }
            _ => {}
        }
    }

    /// Each object of the archive is told of once, and is there.
    async fn check_completed(&self, latest: &Latest, run: &Run, files: &[File]) {
        let Simulator { bench, people, .. } = &self.simulator;
        let report = bench.imports.report(&bench.caller, &latest.id.to_string()).await.unwrap();
        assert_eq!(report.phase, ReportPhase::Execution);
        let told: Vec<&ReportItem> = report.items.iter().filter(|item| item.kind != Kind::Folder).collect();
        let paths: BTreeSet<&str> = told.iter().map(|item| item.path.as_str()).collect();
        assert_eq!(paths, latest.vault.paths(), "{told:#?}");
        let sum: u64 = counted(run.counters).iter().sum();
        let count = told.len() as u64;
        let expected = (paths.len() as u64, count, count, count);
        assert_eq!((count, sum, run.counters.processed, run.total), expected, "{told:#?}");
        let assets = bench.attachments().await;
        for item in told {
            let id = item.id.map(|id| id.to_string()).unwrap_or_default();
            if item.kind == Kind::Asset {
                assert!(assets.contains(&id), "{item:?}");
                continue;
            }
            let is_touched = people.has_touched(&id);
            let found = files.iter().find(|file| file.id == id);
            match item.action {
                ReportAction::Created | ReportAction::Updated | ReportAction::Skipped => {
                    let place = found.map(|file| file.path.clone());
                    assert!(is_touched || place == Some(format!("/V/{}", item.path)), "{item:?}: {place:?}");
                    if !is_touched {
                        self.check_text(latest, &report, item, &id).await;
                    }
                }
                ReportAction::Conflict => assert!(is_touched, "{item:?}: {found:?}"),
                ReportAction::Removed | ReportAction::Kept | ReportAction::Failed => panic!("{item:?}"),
            }
        }
    }

    /// A note says what the archive has, and leads to where that is.
    async fn check_text(&self, latest: &Latest, report: &Report, item: &ReportItem, id: &str) {
        let text = self.simulator.bench.text(id).await;
        assert!(text.starts_with(&latest.vault.opening(&item.path)), "{item:?}: {text}");
        // What was there before leads to where its targets were then.
        if item.action == ReportAction::Skipped {
            return;
        }
        let id_of = |path: &str| {
            let found = report.items.iter().find(|other| other.path == path);
            found.and_then(|other| other.id)
        };
        let name = format!("{}.md", target(&item.path));
        let target = NOTES.iter().find(|(path, _)| path.rsplit('/').next() == Some(name.as_str()));
        if let Some(target) = target.and_then(|&(path, _)| id_of(path)) {
            assert!(text.contains(&format!("(/file/{target})")), "{item:?}: {text}");
        }
        if let Some(picture) = id_of(PICTURE).filter(|_| item.path == SHOWING) {
            assert!(text.contains(&format!("(/api/assets/{picture}/content)")), "{item:?}: {text}");
        }
    }

    /// The files from before are there again, except those that people touched, and so are the attachments.
    async fn check_rolled_back(&self, latest: &Latest, files: &[File]) {
        let before = self.simulator.untouched(&latest.before.files);
        assert_eq!(self.simulator.untouched(files), before, "what a rollback leaves");
        let assets = self.simulator.bench.attachments().await;
        assert_eq!(assets, latest.before.assets, "what a rollback leaves of attachments");
    }
}

impl Bench {
    /// Previews an import of a vault, and queues it.
    async fn start_import(&self, vault: &Vault) -> Import {
        let previewed = self.preview_import(draft_of(ImportProvider::ObsidianZip), &vault.archive()).await;
        let id = previewed.unwrap().run.id.to_string();
        self.imports.start(&self.caller, &id).await.unwrap()
    }

    async fn inventory(&self) -> Inventory {
        Inventory { files: self.live().await, assets: self.attachments().await }
    }

    async fn attachments(&self) -> BTreeSet<String> {
        let mut assets = AssetServiceClient::new(self.content.clone());
        let listed = assets.list_assets(self.request(content::ListAssetsRequest::default())).await;
        listed.unwrap().into_inner().assets.into_iter().map(|asset| asset.id).collect()
    }

    async fn text(&self, id: &str) -> String {
        let asked = self.request(content::GetFileRequest { file_id: id.to_owned() });
        self.files().get_file(asked).await.unwrap().into_inner().file.unwrap().content.unwrap()
    }
}
