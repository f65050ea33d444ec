//! Random operations on a tree, against a model that is too simple to be wrong.

use std::collections::BTreeMap;

use cairn_chassis::feed::Kind;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::*;

#[derive(Debug, Clone)]
enum Step {
    MakeFolder { parent: usize },
    MakeFile { folder: usize },
    MoveFolder { folder: usize, parent: usize },
    MoveFile { file: usize, folder: usize },
    DeleteFolder { folder: usize },
    DeleteFile { file: usize },
    Restore { deletion: usize },
    Remove { deletion: usize },
}

fn step() -> impl Strategy<Value = Step> {
    let place = || 0..12_usize;
    prop_oneof![
        4 => place().prop_map(|parent| Step::MakeFolder { parent }),
        3 => place().prop_map(|folder| Step::MakeFile { folder }),
        4 => (place(), place()).prop_map(|(folder, parent)| Step::MoveFolder { folder, parent }),
        2 => (place(), place()).prop_map(|(file, folder)| Step::MoveFile { file, folder }),
        2 => place().prop_map(|folder| Step::DeleteFolder { folder }),
        1 => place().prop_map(|file| Step::DeleteFile { file }),
        2 => (0..4_usize).prop_map(|deletion| Step::Restore { deletion }),
        1 => (0..4_usize).prop_map(|deletion| Step::Remove { deletion }),
    ]
}

/// Parents by number; a dead item is absent. The last number of all means the root.
#[derive(Debug, Default)]
struct Model {
    folders: BTreeMap<usize, (FolderId, Option<usize>)>,
    files: BTreeMap<usize, (FileId, Option<usize>)>,
    /// From the first to the last.
    trash: Vec<Deleted>,
    made: usize,
}

/// What one deletion took; the first is what was deleted.
#[derive(Debug)]
enum Deleted {
    File(usize, FileId, Option<usize>),
    Folder(usize, BTreeMap<usize, (FolderId, Option<usize>)>, BTreeMap<usize, (FileId, Option<usize>)>),
}

impl Deleted {
    fn item(&self) -> (Kind, String) {
        match self {
            Self::File(_, id, _) => (Kind::File, id.to_string()),
            Self::Folder(top, folders, _) => (Kind::Folder, folders[top].0.to_string()),
        }
    }
}

impl Model {
    fn folder(&self, place: usize) -> Option<usize> {
        self.folders.keys().nth(place).copied()
    }

    fn file(&self, place: usize) -> Option<usize> {
        self.files.keys().nth(place).copied()
    }

    fn id(&self, folder: Option<usize>) -> Option<FolderId> {
        folder.map(|number| self.folders[&number].0)
    }

    fn is_below(&self, folder: Option<usize>, above: usize) -> bool {
        folder.is_some_and(|number| number == above || self.is_below(self.folders[&number].1, above))
    }

    fn path(&self, folder: Option<usize>) -> String {
        folder.map_or(String::new(), |number| format!("{}/{number}", self.path(self.folders[&number].1)))
    }

    fn folder_paths(&self) -> Vec<String> {
        let mut paths: Vec<_> = self.folders.keys().map(|number| self.path(Some(*number))).collect();
        paths.sort();
        paths
    }

    fn file_paths(&self) -> Vec<String> {
        let mut paths: Vec<_> = self
            .files
            .iter()
            .map(|(number, (_, folder))| format!("{}/{number}", self.path(*folder)))
            .collect();
        paths.sort();
        paths
    }

    fn delete_folder(&mut self, folder: usize) {
        let files: Vec<_> = self
            .files
            .iter()
            .filter(|(_, (_, above))| self.is_below(*above, folder))
            .map(|(n, _)| *n)
            .collect();
        let folders: Vec<_> =
            self.folders.keys().filter(|number| self.is_below(Some(**number), folder)).copied().collect();
        let (taken, left) =
            std::mem::take(&mut self.files).into_iter().partition(|(number, _)| files.contains(number));
        self.files = left;
        let (taken_folders, left) =
            std::mem::take(&mut self.folders).into_iter().partition(|(number, _)| folders.contains(number));
        self.folders = left;
        self.trash.push(Deleted::Folder(folder, taken_folders, taken));
    }

    fn restore(&mut self, deletion: usize) {
        match self.trash.remove(deletion) {
            Deleted::File(number, id, folder) => {
                let folder = folder.filter(|folder| self.folders.contains_key(folder));
                self.files.insert(number, (id, folder));
            }
            Deleted::Folder(top, mut folders, mut files) => {
                let place = folders.get_mut(&top).unwrap();
                place.1 = place.1.filter(|parent| self.folders.contains_key(parent));
                self.folders.append(&mut folders);
                self.files.append(&mut files);
            }
        }
    }
}

async fn apply(bench: &Bench, caller: &Caller, model: &mut Model, step: &Step) {
    let number = model.made;
    match *step {
        Step::MakeFolder { parent } => {
            let parent = model.folder(parent);
            let draft = folder_draft(&number.to_string(), model.id(parent));
            let made = bench.folders.create(caller, draft).await.unwrap().item;
            model.folders.insert(number, (made.id, parent));
            model.made += 1;
        }
        Step::MakeFile { folder } => {
            let folder = model.folder(folder);
            let made =
                bench.files.create(caller, draft(&number.to_string(), model.id(folder))).await.unwrap().item;
            model.files.insert(number, (made.id, folder));
            model.made += 1;
        }
        Step::MoveFolder { folder, parent } => {
            let Some(folder) = model.folder(folder) else {
                return;
            };
            let parent = model.folder(parent);
            let id = model.id(Some(folder)).unwrap().to_string();
            let result = bench.folders.update(caller, &id, move_to(model.id(parent))).await;
            if model.is_below(parent, folder) {
                assert_eq!(violations(result), pairs(&[("parentId", "cycle")]));
            } else {
                result.unwrap();
                model.folders.get_mut(&folder).unwrap().1 = parent;
            }
        }
        Step::MoveFile { file, folder } => {
            let Some(file) = model.file(file) else { return };
            let folder = model.folder(folder);
            let patch = files::FilePatch {
                folder_id: Some(model.id(folder).map(|id| id.to_string())),
                ..files::FilePatch::default()
            };
            let id = model.files[&file].0.to_string();
            bench.files.update(caller, &id, patch).await.unwrap();
            model.files.get_mut(&file).unwrap().1 = folder;
        }
        Step::DeleteFolder { folder } => {
            let Some(folder) = model.folder(folder) else {
                return;
            };
            let id = model.id(Some(folder)).unwrap().to_string();
            bench.folders.delete(caller, &id).await.unwrap();
            model.delete_folder(folder);
        }
        Step::DeleteFile { file } => {
            let Some(file) = model.file(file) else { return };
            bench.files.delete(caller, &model.files[&file].0.to_string()).await.unwrap();
            let (id, folder) = model.files.remove(&file).unwrap();
            model.trash.push(Deleted::File(file, id, folder));
        }
        Step::Restore { deletion } => {
            let Some((kind, id)) = model.trash.get(deletion).map(Deleted::item) else { return };
            bench.trash().restore(caller, kind, &id).await.unwrap();
            model.restore(deletion);
        }
        Step::Remove { deletion } => {
            let Some((kind, id)) = model.trash.get(deletion).map(Deleted::item) else { return };
            bench.trash().remove(caller, kind, &id).await.unwrap();
            model.trash.remove(deletion);
        }
    }
}

async fn run(bench: &Bench, caller: &Caller, steps: &[Step]) {
    let mut model = Model::default();
    for step in steps {
        apply(bench, caller, &mut model, step).await;
    }
    let mut folders = bench.folder_paths(caller, None).await;
    folders.sort();
    assert_eq!(folders, model.folder_paths(), "{}", bench.engine());
    let page = bench.files.list(caller, None, first_page()).await.unwrap();
    let mut files: Vec<_> = page.items.into_iter().map(|file| file.path).collect();
    files.sort();
    assert_eq!(files, model.file_paths(), "{}", bench.engine());

    let listed = bench.trash().list(caller, None, first_page()).await.unwrap().items;
    let mut listed: Vec<_> =
        listed.into_iter().map(|listed| (listed.deletion.kind, listed.deletion.item_id)).collect();
    listed.sort();
    let mut expected: Vec<_> = model.trash.iter().map(Deleted::item).collect();
    expected.sort();
    assert_eq!(listed, expected, "{}", bench.engine());

    // Every folder's scope covers exactly what the model has below it.
    for number in model.folders.keys() {
        let scoped = Caller { scope: Scope::Folders([model.folders[number].0].into()), ..caller.clone() };
        let covered = model.files.values().filter(|(_, folder)| model.is_below(*folder, *number)).count();
        assert_eq!(bench.names(&scoped, None).await.len(), covered, "{}", bench.engine());
    }
    let feed = bench.context.feed.read(caller.workspace, 0, 0).await.unwrap();
    assert!(feed.changes.iter().map(|change| change.position).eq(1..=feed.head));
}

#[test]
fn a_tree_is_what_its_operations_made() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for bench in runtime.block_on(benches()) {
        let workspaces = AtomicU64::new(1_000);
        let mut runner =
            TestRunner::new(Config { cases: 24, failure_persistence: None, ..Config::default() });
        let steps = prop::collection::vec(step(), 0..40);
        let result = runner.run(&steps, |steps| {
            let fresh = caller(u128::from(workspaces.fetch_add(1, Ordering::Relaxed)));
            runtime.block_on(run(&bench, &fresh, &steps));
            Ok(())
        });
        result.unwrap();
        assert_eq!(runtime.block_on(bench.wrong()), [], "{}", bench.engine());
    }
}
