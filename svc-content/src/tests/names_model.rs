//! A model test of the in-memory names against the SQL engine: random trees, random changes and random searches.

use cairn_chassis::feed::Kind;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, TestRunner};

use super::*;
use crate::files::FilePatch;

const STEPS: usize = 60;
const QUESTIONS: usize = 8;
const NAMES: [&str; 14] = [
    "Plan.md",
    "plan",
    "My PLAN b",
    "100%_done",
    "x_y",
    "back\\slash",
    "Straße",
    "STRASSE",
    "é",
    "e\u{301}té",
    "ΟΔΟΣ",
    "a",
    "A",
    "ab",
];
const PARTS: [&str; 22] = [
    "PLAN", "plan", "p", "la", "a", "ab", "%", "_", "\\", "ss", "ß", "É", "E\u{301}", "οδος", "Σ", ".md",
    "n.", "zebra", " ", " b", "100%", "plan.md",
];

/// A change between searches.
#[derive(Debug, Clone)]
enum Step {
    Make(&'static str, usize),
    /// Several files with that name, so that there are ties.
    MakeAlike(&'static str, usize),
    Rename(usize, &'static str),
    Move(usize, usize),
    /// A change that keeps the name.
    Describe(usize),
    Delete(usize),
    Restore(usize),
    MakeFolder(usize),
    MoveFolder(usize, usize),
    DeleteFolder(usize),
    RestoreFolder(usize),
}

/// A search, and the folders that it is below.
#[derive(Debug, Clone)]
struct Question {
    part: &'static str,
    limit: u32,
    below: Option<usize>,
    scope: Option<Vec<usize>>,
}

fn step() -> impl Strategy<Value = Step> {
    let name = || prop::sample::select(NAMES.to_vec());
    let some = any::<usize>;
    prop_oneof![
        10 => (name(), some()).prop_map(|(name, at)| Step::Make(name, at)),
        2 => (name(), some()).prop_map(|(name, at)| Step::MakeAlike(name, at)),
        4 => (some(), name()).prop_map(|(which, name)| Step::Rename(which, name)),
        3 => (some(), some()).prop_map(|(which, to)| Step::Move(which, to)),
        1 => some().prop_map(Step::Describe),
        3 => some().prop_map(Step::Delete),
        2 => some().prop_map(Step::Restore),
        3 => some().prop_map(Step::MakeFolder),
        2 => (some(), some()).prop_map(|(which, to)| Step::MoveFolder(which, to)),
        1 => some().prop_map(Step::DeleteFolder),
        2 => some().prop_map(Step::RestoreFolder),
    ]
}

fn question() -> impl Strategy<Value = Question> {
    let part = prop::sample::select(PARTS.to_vec());
    let below = prop::option::weighted(0.3, any::<usize>());
    let scope = prop::option::weighted(0.3, prop::collection::vec(any::<usize>(), 0..3));
    (part, 1..9_u32, below, scope).prop_map(|(part, limit, below, scope)| Question {
        part,
        limit,
        below,
        scope,
    })
}

/// A workspace that is searched in memory, and by the engine alone.
struct Both<'a> {
    bench: &'a Bench,
    engine: Files,
    files: Vec<String>,
    folders: Vec<FolderId>,
}

impl<'a> Both<'a> {
    fn new(bench: &'a Bench) -> Self {
        let engine = Files::new(Context { names: SnapshotCache::new(0), ..bench.context.clone() });
        Self { bench, engine, files: Vec::new(), folders: Vec::new() }
    }

    fn file(&self, which: usize) -> String {
        self.files.get(which % self.files.len().max(1)).cloned().unwrap_or_else(missing_file)
    }

    /// One of the folders, or the root.
    fn folder(&self, which: usize) -> Option<FolderId> {
        self.folders.get(which % (self.folders.len() + 1)).copied()
    }

    /// A rejected change, such as in a folder that is in trash, has no effect.
    async fn take(&mut self, step: Step) {
        let bench = self.bench;
        let caller = &bench.caller;
        match step {
            Step::Make(name, at) => self.make(name, at).await,
            Step::MakeAlike(name, at) => {
                for _ in 0..3 {
                    self.make(name, at).await;
                }
            }
            Step::Rename(which, name) => {
                let patch = FilePatch { name: Some(name.to_owned()), ..FilePatch::default() };
                let _refused = bench.files.update(caller, &self.file(which), patch).await;
            }
            Step::Move(which, to) => {
                let folder_id = Some(self.folder(to).map(|id| id.to_string()));
                let patch = FilePatch { folder_id, ..FilePatch::default() };
                let _refused = bench.files.update(caller, &self.file(which), patch).await;
            }
            Step::Describe(which) => {
                let description = Some(Some(format!("of {}", self.files.len())));
                let patch = FilePatch { description, ..FilePatch::default() };
                let _refused = bench.files.update(caller, &self.file(which), patch).await;
            }
            Step::Delete(which) => {
                let _refused = bench.files.delete(caller, &self.file(which)).await;
            }
            Step::Restore(which) => {
                let _refused = bench.trash().restore(caller, Kind::File, &self.file(which)).await;
            }
            Step::MakeFolder(at) => {
                let draft = folder_draft(&format!("f{}", self.folders.len()), self.folder(at));
                if let Ok(made) = bench.folders.create(caller, draft).await {
                    self.folders.push(made.item.id);
                }
            }
            Step::MoveFolder(which, to) => {
                if let Some(folder) = self.folder(which) {
                    let _refused =
                        bench.folders.update(caller, &folder.to_string(), move_to(self.folder(to))).await;
                }
            }
            Step::DeleteFolder(which) => {
                if let Some(folder) = self.folder(which) {
                    let _refused = bench.folders.delete(caller, &folder.to_string()).await;
                }
            }
            Step::RestoreFolder(which) => {
                if let Some(folder) = self.folder(which) {
                    let _refused = bench.trash().restore(caller, Kind::Folder, &folder.to_string()).await;
                }
            }
        }
    }

    async fn make(&mut self, name: &str, at: usize) {
        let draft = draft(name, self.folder(at));
        if let Ok(made) = self.bench.files.create(&self.bench.caller, draft).await {
            self.files.push(made.item.id.to_string());
        }
    }

    async fn ask(&self, asked: &Question) {
        let below = asked.below.and_then(|which| self.folder(which)).map(|id| id.to_string());
        let caller = match &asked.scope {
            None => self.bench.caller.clone(),
            Some(scope) => {
                let folders: Vec<FolderId> = scope.iter().filter_map(|which| self.folder(*which)).collect();
                self.bench.scoped(&folders)
            }
        };
        let (below, limit) = (below.as_deref(), asked.limit);
        let by_engine = self.engine.search(&caller, asked.part, below, limit, Vec::new()).await;
        let by_names = self.bench.files.search(&caller, asked.part, below, limit, Vec::new()).await;
        let (by_engine, by_names) =
            (by_engine.map_err(|e| e.to_string()), by_names.map_err(|e| e.to_string()));
        assert_eq!(by_names, by_engine, "{} {asked:?}", self.bench.engine());
    }
}

#[test]
fn names_answer_what_the_engine_answers() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for bench in runtime.block_on(benches()) {
        let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::default() });
        let mut both = Both::new(&bench);
        for _ in 0..2 * STEPS {
            let taken = step().new_tree(&mut runner).unwrap().current();
            runtime.block_on(both.take(taken));
            for _ in 0..QUESTIONS {
                let asked = question().new_tree(&mut runner).unwrap().current();
                runtime.block_on(both.ask(&asked));
            }
        }
        assert_eq!(bench.context.names.len(), 1, "names were never asked");
    }
}
