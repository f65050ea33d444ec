use std::collections::{BTreeMap, HashSet};

use proptest::prelude::*;

use super::*;
use crate::model::{FileType, Step, TextPlace, Write};

fn id(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

fn run(number: u128) -> SyncRunId {
    SyncRunId(id(number))
}

fn document(path: &str, hash: &str) -> Document {
    Document {
        path: path.into(),
        file_type: FileType::Markdown,
        hash: hash.into(),
        bytes: 1,
        text: Some(TextPlace { piece: 0, offset: 0 }),
    }
}

fn entry(kind: Kind, path: &str, number: u128, hash: &str) -> Entry {
    let version = u64::from(kind == Kind::File);
    Entry { kind, path: path.into(), id: id(number), version, hash: hash.into(), run: run(1) }
}

fn state(name: &str, parent: Option<u128>, version: u64, hash: &str) -> State {
    let (parent, name, hash) = (parent.map(id), name.to_owned(), hash.to_owned());
    State { parent, name, version, hash, ..State::default() }
}

fn rules(policy: ConflictPolicy, prune: bool) -> Rules {
    Rules { run: run(2), policy, prune }
}

fn actions(plan: &Plan<'_>) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for (document, old) in &plan.creates {
        all.insert(document.path.clone(), if old.is_some() { "duplicate" } else { "create" }.to_owned());
    }
    for (document, _) in &plan.updates {
        all.insert(document.path.clone(), "update".to_owned());
    }
    for unwritten in &plan.unwritten {
        let why = unwritten.why.as_ref().map_or("", |why| why.0.as_str());
        all.insert(unwritten.path.clone(), format!("{}{why}", unwritten.action));
    }
    all
}

/// Every way a document and its file can stand, each in a document of its own.
fn all_ways() -> (Details, Baseline, States) {
    let ways = [
        "same",
        "changed",
        "edited",
        "both",
        "came-together",
        "trashed",
        "trashed-changed",
        "purged-changed",
    ];
    let mut details = Details { documents: vec![document("new", "h")], ..Details::default() };
    let (mut entries, mut states) = (Vec::new(), States::new());
    for (number, way) in (10_u128..).zip(ways) {
        let is_changed = !matches!(way, "same" | "edited" | "trashed");
        details.documents.push(document(way, if is_changed { "new" } else { "old" }));
        entries.push(entry(Kind::File, way, number, "old"));
        let stands = match way {
            "edited" | "both" => Some(state(way, None, 2, "theirs")),
            "came-together" => Some(state(way, None, 2, "new")),
            "purged-changed" => None,
            _ => Some(state(way, None, 1, "old")),
        };
        if let Some(mut stands) = stands {
            stands.in_trash = way.starts_with("trashed");
            states.insert(id(number), stands);
        }
    }
    (details, Baseline::of(entries), states)
}

#[test]
fn every_way_a_document_and_its_file_can_stand() {
    let (details, baseline, states) = all_ways();
    let expected = [
        ("new", ["create"; 3]),
        ("same", ["skipped"; 3]),
        ("changed", ["update", "skipped", "duplicate"]),
        ("edited", ["skipped"; 3]),
        ("both", ["conflictedited_in_service", "skipped", "duplicate"]),
        ("came-together", ["skipped", "skipped", "duplicate"]),
        ("trashed", ["skipped"; 3]),
        ("trashed-changed", ["conflictdeleted_in_service", "skipped", "conflictdeleted_in_service"]),
        ("purged-changed", ["conflictdeleted_in_service", "skipped", "conflictdeleted_in_service"]),
    ];
    for (place, policy) in ConflictPolicy::ALL.into_iter().enumerate() {
        let plan = plan(rules(policy, false), &details, &baseline, &states);
        let found = actions(&plan);
        for (path, by_policy) in expected {
            assert_eq!(found[path], by_policy[place], "{path} {policy}");
        }
        assert_eq!(plan.adopts.len(), usize::from(policy == ConflictPolicy::Update));
    }
}

#[test]
fn what_this_run_has_written_is_done_and_what_it_lacks_the_text_of_is_outdated() {
    let (mut details, baseline, states) = all_ways();
    let again = Rules { run: run(1), policy: ConflictPolicy::Update, prune: false };
    let found = actions(&plan(again, &details, &baseline, &states));
    assert!(!found.contains_key("same") && !found.contains_key("edited"));
    for document in &mut details.documents {
        document.text = None;
    }
    let found = actions(&plan(rules(ConflictPolicy::Update, false), &details, &baseline, &states));
    for path in ["new", "changed"] {
        assert_eq!(found[path], "conflictpreview_outdated");
    }
    assert_eq!(found["same"], "skipped");
}

#[test]
fn only_what_nobody_touched_is_pruned_and_folders_only_when_nothing_else_is_in_them() {
    let baseline = Baseline::of(vec![
        entry(Kind::Folder, "a", 1, ""),
        entry(Kind::Folder, "a/b", 2, ""),
        entry(Kind::Folder, "c", 3, ""),
        entry(Kind::Folder, "d", 4, ""),
        entry(Kind::Folder, "gone", 5, ""),
        entry(Kind::File, "a/b/x", 10, "h"),
        entry(Kind::File, "c/edited", 11, "h"),
        entry(Kind::File, "d/x", 12, "h"),
        entry(Kind::File, "lost", 13, "h"),
        entry(Kind::File, "kept", 14, "h"),
    ]);
    let folder = |name: &str, parent, children| State { children, ..state(name, parent, 0, "") };
    let states = States::from([
        (id(1), folder("a", None, 1)),
        (id(2), folder("b", Some(1), 1)),
        (id(3), folder("c", None, 1)),
        (id(4), folder("renamed", None, 1)),
        (id(10), state("x", Some(2), 1, "h")),
        (id(11), state("edited", Some(3), 2, "h")),
        (id(12), state("x", Some(4), 1, "h")),
        (id(14), state("kept", None, 1, "h")),
    ]);
    let details = Details { documents: vec![document("kept", "h")], ..Details::default() };
    for prune in [false, true] {
        let plan = plan(rules(ConflictPolicy::Update, prune), &details, &baseline, &states);
        let pruned: Vec<_> = plan.prunes.iter().map(|entry| entry.path.as_str()).collect();
        assert_eq!(pruned, ["a/b/x", "d/x", "a/b", "a"], "files, then folders from the deepest");
        assert_eq!(plan.forgets, [(Kind::File, "lost".to_owned()), (Kind::Folder, "gone".to_owned())]);
        assert_eq!(actions(&plan).contains_key("c/edited"), prune);
        assert_eq!(plan.would().pruned, 2);
    }
}

#[test]
fn a_further_version_has_a_name_of_its_own() {
    let taken = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<HashSet<_>>();
    let cases = [
        ("note.md", &["note.md"][..], "note (2).md"),
        ("note.md", &["note (2).md", "note (3).md"], "note (4).md"),
        ("note (2).md", &["note.md", "note (2).md"], "note (3).md"),
        ("README", &[], "README (2)"),
        (".env", &[], ".env (2)"),
        ("a.tar.gz", &[], "a.tar (2).gz"),
    ];
    for (name, names, expected) in cases {
        assert_eq!(steps::beside(name, &taken(names)), expected);
    }
    let long = format!("{}.md", "x".repeat(252));
    let found = steps::beside(&long, &taken(&[]));
    assert_eq!(found.chars().count(), 255);
    assert!(found.ends_with(" (2).md"));
}

/// The workspace and the memory of a sync, on which plans are carried out.
#[derive(Debug, Clone, Default)]
struct World {
    states: States,
    baseline: Baseline,
    next: u128,
    /// What people made of files: the content that must stay.
    edits: BTreeMap<Uuid, String>,
}

impl World {
    fn next(&mut self) -> Uuid {
        self.next += 1;
        id(1_000 + self.next)
    }

    fn sync(&mut self, tree: &BTreeMap<String, u8>, rules: Rules) -> Vec<Unwritten> {
        let documents = tree.iter().map(|(path, content)| document(path, &content.to_string())).collect();
        let details = Details { documents, ..Details::default() };
        let (baseline, states) = (self.baseline.clone(), self.states.clone());
        let plan = plan(rules, &details, &baseline, &states);
        let mut tree = Tree::of(&plan, &baseline, &states);
        while let Some(path) = tree.unknown() {
            let new = FolderRef::New(self.next());
            tree.put(path, new);
        }
        let mut names = HashMap::new();
        let steps = steps(&plan, &tree, &states, None, &mut names, |_, _| self.next(), rules.prune);
        for adopt in &plan.adopts {
            self.edits.remove(&adopt.id);
            self.baseline.0.insert((adopt.kind, adopt.path.clone()), adopt.clone());
        }
        for (kind, path) in &plan.forgets {
            self.baseline.0.remove(&(*kind, path.clone()));
        }
        for step in steps {
            self.carry_out(&step, rules.run);
        }
        plan.unwritten
    }

    fn carry_out(&mut self, step: &Step, run: SyncRunId) {
        match &step.write {
            Write::Create { name, folder, .. } => {
                assert!(!self.states.contains_key(&step.id));
                let version = u64::from(step.kind == Kind::File);
                let made = state(name, folder.map(|id| id.as_u128()), version, &step.hash);
                self.states.insert(step.id, made);
            }
            Write::Update => {
                let file = self.states.get_mut(&step.id).unwrap();
                assert!(!file.in_trash && file.version == step.version, "nothing is overwritten");
                file.version += 1;
                file.hash.clone_from(&step.hash);
            }
            Write::Trash => {
                let item = self.states.get_mut(&step.id).unwrap();
                assert!(!item.in_trash && (step.kind == Kind::Folder || item.version == step.version));
                item.in_trash = true;
            }
            Write::Relate | Write::Revert { .. } | Write::Restore => unreachable!(),
        }
        let key = (step.kind, step.path.clone());
        if step.write == Write::Trash {
            self.baseline.0.remove(&key);
        } else {
            let (version, hash) = (step.version_after(), step.hash.clone());
            let version = if step.kind == Kind::File { version } else { 0 };
            let (kind, path, id) = (step.kind, step.path.clone(), step.id);
            self.baseline.0.insert(key, Entry { kind, path, id, version, hash, run });
        }
        self.count_children();
    }

    fn count_children(&mut self) {
        let mut counts: HashMap<Uuid, u64> = HashMap::new();
        for state in self.states.values().filter(|state| !state.in_trash) {
            *counts.entry(state.parent.unwrap_or_default()).or_default() += 1;
        }
        for (id, state) in &mut self.states {
            state.children = counts.get(id).copied().unwrap_or(0);
        }
    }

    fn edit(&mut self, choice: prop::sample::Index, content: u8, deletes: bool) {
        let mut files: Vec<Uuid> = self.baseline.of_kind(Kind::File).map(|entry| entry.id).collect();
        files.retain(|id| self.states.get(id).is_some_and(|state| !state.in_trash));
        files.sort_unstable();
        if files.is_empty() {
            return;
        }
        let id = files[choice.index(files.len())];
        let state = self.states.get_mut(&id).unwrap();
        if deletes {
            state.in_trash = true;
            self.edits.remove(&id);
        } else {
            state.version += 1;
            state.hash = content.to_string();
            self.edits.insert(id, content.to_string());
        }
        self.count_children();
    }
}

fn trees() -> impl Strategy<Value = BTreeMap<String, u8>> {
    prop::collection::btree_map("[ab](/[ab]){0,2}", 0_u8..4, 0..6)
}

type Edit = (prop::sample::Index, u8, bool);

proptest! {
    #[test]
    fn edits_stay_and_every_change_of_the_directory_arrives_or_is_a_named_conflict(
        rounds in prop::collection::vec(
            (trees(), prop::collection::vec(any::<Edit>(), 0..4), 0_usize..3, any::<bool>()),
            1..5,
        ),
    ) {
        let mut world = World::default();
        for (number, (tree, edits, policy, prune)) in (10_u128..).zip(rounds) {
            let policy = ConflictPolicy::ALL[policy];
            let before = world.baseline.clone();
            let unwritten = world.sync(&tree, Rules { run: run(number), policy, prune });
            let named: BTreeMap<&str, &Unwritten> =
                unwritten.iter().map(|unwritten| (unwritten.path.as_str(), unwritten)).collect();
            for (id, content) in &world.edits {
                let state = &world.states[id];
                prop_assert!(!state.in_trash && state.hash == *content, "an edit was lost");
            }
            for (path, content) in &tree {
                let hash = content.to_string();
                let entry = world.baseline.get(Kind::File, path);
                let arrived = entry.is_some_and(|entry| entry.hash == hash);
                let was_changed = before.get(Kind::File, path).is_none_or(|before| before.hash != hash);
                let is_named = named.get(path.as_str()).is_some_and(|unwritten| {
                    unwritten.action == SyncAction::Conflict || policy == ConflictPolicy::Skip
                });
                prop_assert!(arrived || (was_changed && is_named), "{path} neither arrived nor is named");
            }
            if prune {
                for entry in world.baseline.of_kind(Kind::File) {
                    let is_wanted = tree.contains_key(&entry.path);
                    let is_theirs = world.states.get(&entry.id).is_some_and(|state| state.version != entry.version);
                    prop_assert!(is_wanted || is_theirs, "{} is left", entry.path);
                }
            }
            // The same again does nothing.
            let mut again = world.clone();
            again.sync(&tree, Rules { run: run(number + 1_000), policy, prune });
            let moved = |world: &World| {
                let mut all: Vec<_> = world.states.iter().map(|(id, state)| (*id, state.clone())).collect();
                all.sort_by_key(|(id, _)| *id);
                all
            };
            if policy != ConflictPolicy::Duplicate {
                prop_assert_eq!(moved(&world), moved(&again));
            }
            for (choice, content, deletes) in edits {
                world.edit(choice, content, deletes);
            }
        }
    }
}
