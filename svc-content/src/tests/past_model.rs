//! Files as they were, against what reads answered at that time, over random writes.

use std::collections::BTreeMap;

use cairn_chassis::clock::{ManualClock, Timestamp};
use cairn_chassis::feed::Kind;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::time::Duration;

use super::*;
use crate::past::{Moment, Past};
use crate::tree::Trees;

#[derive(Debug, Clone)]
enum Step {
    MakeFolder { parent: usize },
    MakeFile { folder: usize },
    Edit { file: usize },
    RenameFile { file: usize },
    Tag { file: usize },
    MoveFile { file: usize, folder: usize },
    RenameFolder { folder: usize },
    MoveFolder { folder: usize, parent: usize },
    DeleteFile { file: usize },
    DeleteFolder { folder: usize },
    Restore { deletion: usize },
    Remove { deletion: usize },
}

fn step() -> impl Strategy<Value = Step> {
    let place = || 0..8_usize;
    prop_oneof![
        3 => place().prop_map(|parent| Step::MakeFolder { parent }),
        4 => place().prop_map(|folder| Step::MakeFile { folder }),
        4 => place().prop_map(|file| Step::Edit { file }),
        2 => place().prop_map(|file| Step::RenameFile { file }),
        1 => place().prop_map(|file| Step::Tag { file }),
        3 => (place(), place()).prop_map(|(file, folder)| Step::MoveFile { file, folder }),
        2 => place().prop_map(|folder| Step::RenameFolder { folder }),
        3 => (place(), place()).prop_map(|(folder, parent)| Step::MoveFolder { folder, parent }),
        1 => place().prop_map(|file| Step::DeleteFile { file }),
        1 => place().prop_map(|folder| Step::DeleteFolder { folder }),
        3 => (0..3_usize).prop_map(|deletion| Step::Restore { deletion }),
        1 => (0..3_usize).prop_map(|deletion| Step::Remove { deletion }),
    ]
}

/// What a file is, as a read tells it: path, tags, version, content.
type Seen = (String, Vec<String>, u64, String);

/// How the files stood after a write.
struct Stood {
    position: u64,
    at: Timestamp,
    files: BTreeMap<FileId, Seen>,
}

fn seen((file, content): (File, String)) -> Seen {
    (file.path, file.tags, file.version, content)
}

struct World<'a> {
    bench: &'a Bench,
    caller: &'a Caller,
    files: Files,
    folders: Folders,
    trash: crate::trash::Trash,
    number: usize,
}

impl World<'_> {
    async fn file(&self, place: usize) -> Option<String> {
        let page = self.files.list(self.caller, None, first_page()).await.unwrap();
        page.items.get(place).map(|file| file.id.to_string())
    }

    async fn folder(&self, place: usize) -> Option<String> {
        let page = self.folders.list(self.caller, None, first_page()).await.unwrap();
        page.items.get(place).map(|folder| folder.id.to_string())
    }

    async fn deletion(&self, place: usize) -> Option<(Kind, String)> {
        let page = self.trash.list(self.caller, None, first_page()).await.unwrap();
        page.items.get(place).map(|listed| (listed.deletion.kind, listed.deletion.item_id.clone()))
    }

    async fn patch(&self, place: usize, patch: files::FilePatch) {
        if let Some(id) = self.file(place).await {
            self.files.update(self.caller, &id, patch).await.unwrap();
        }
    }

    /// `true` when something is gone for good.
    async fn apply(&mut self, step: &Step) -> bool {
        self.number += 1;
        let (caller, name) = (self.caller, format!("n{}", self.number));
        match *step {
            Step::MakeFolder { parent } => {
                let draft = folders::FolderDraft { name, parent_id: self.folder(parent).await };
                self.folders.create(caller, draft).await.unwrap();
            }
            Step::MakeFile { folder } => {
                let folder_id = self.folder(folder).await;
                self.files
                    .create(caller, files::FileDraft { folder_id, ..draft(&name, None) })
                    .await
                    .unwrap();
            }
            Step::Edit { file } => {
                self.patch(file, files::FilePatch { content: Some(name), ..Default::default() }).await;
            }
            Step::RenameFile { file } => {
                self.patch(file, files::FilePatch { name: Some(name), ..Default::default() }).await;
            }
            Step::Tag { file } => {
                self.patch(file, files::FilePatch { tags: Some(vec![name]), ..Default::default() }).await;
            }
            Step::MoveFile { file, folder } => {
                let folder_id = Some(self.folder(folder).await);
                self.patch(file, files::FilePatch { folder_id, ..Default::default() }).await;
            }
            Step::RenameFolder { folder } => {
                if let Some(id) = self.folder(folder).await {
                    let patch = folders::FolderPatch { name: Some(name), ..Default::default() };
                    self.folders.update(caller, &id, patch).await.unwrap();
                }
            }
            Step::MoveFolder { folder, parent } => {
                if let Some(id) = self.folder(folder).await {
                    let parent_id = Some(self.folder(parent).await);
                    let patch = folders::FolderPatch { parent_id, ..Default::default() };
                    // A folder cannot go below itself.
                    let _ = self.folders.update(caller, &id, patch).await;
                }
            }
            Step::DeleteFile { file } => {
                if let Some(id) = self.file(file).await {
                    self.files.delete(caller, &id).await.unwrap();
                }
            }
            Step::DeleteFolder { folder } => {
                if let Some(id) = self.folder(folder).await {
                    self.folders.delete(caller, &id).await.unwrap();
                }
            }
            Step::Restore { deletion } => {
                if let Some((kind, id)) = self.deletion(deletion).await {
                    self.trash.restore(caller, kind, &id).await.unwrap();
                }
            }
            Step::Remove { deletion } => {
                if let Some((kind, id)) = self.deletion(deletion).await {
                    self.trash.remove(caller, kind, &id).await.unwrap();
                    return kind == Kind::Folder;
                }
            }
        }
        false
    }

    async fn stands(&self, at: Timestamp) -> Stood {
        let page = self.files.list(self.caller, None, first_page()).await.unwrap();
        let mut files = BTreeMap::new();
        for file in page.items {
            let read = self.files.get(self.caller, &file.id.to_string()).await.unwrap();
            files.insert(file.id, seen(read));
        }
        let position = self.bench.context.feed.head(self.caller.workspace).await.unwrap();
        Stood { position, at, files }
    }
}

/// The tree of now with what has changed since a moment put over it: the path and the content's hash of each file; none where
/// nothing was ever written.
async fn tree_then(
    trees: &Trees,
    caller: &Caller,
    moment: Moment,
) -> Option<BTreeMap<FileId, (String, String)>> {
    let workspace = caller.workspace.to_string();
    let past = match trees.past(&workspace, moment).await {
        Ok(past) => past,
        Err(Error::Invalid(_)) if moment == Moment::After(0) => return None,
        Err(error) => panic!("{moment:?}: {error:?}"),
    };
    let now = trees.list(&workspace, "").await.unwrap().items;
    let (mut folders, mut files) = (BTreeMap::new(), BTreeMap::new());
    let is_told = |id: Uuid| !past.gone.iter().any(|(_, gone)| gone.0 == id);
    for folder in now.folders.iter().filter(|one| is_told(one.id.0)).chain(&past.items.folders) {
        folders.insert(folder.id, (folder.parent_id, folder.name.clone()));
    }
    for file in now.files.iter().filter(|one| is_told(one.id.0)).chain(&past.items.files) {
        files.insert(file.id, (file.folder_id, file.name.clone(), file.content_hash.clone()));
    }
    let placed = files.into_iter().filter_map(|(id, (folder, name, hash))| {
        let (mut next, mut path) = (folder, format!("/{name}"));
        while let Some(folder) = next {
            let (above, name) = folders.get(&folder)?;
            path = format!("/{name}{path}");
            next = *above;
        }
        Some((id, (path, hash)))
    });
    Some(placed.collect())
}

/// The trees of then against what was read then, of the files that live now.
async fn check_trees(context: &Context, caller: &Caller, stood: &[Stood], has_lost_folders: bool) {
    let trees = Trees::new(context.clone());
    let Some(last) = stood.last() else { return };
    for then in stood {
        for moment in [Moment::After(then.position), Moment::At(then.at)] {
            let Some(found) = tree_then(&trees, caller, moment).await else { continue };
            for id in last.files.keys() {
                let expected = then.files.get(id).map(|(path, _, _, content)| {
                    (path.clone(), format!("blake3:{}", blake3::hash(content.as_bytes()).to_hex()))
                });
                match (found.get(id), expected) {
                    (None, Some(_)) if has_lost_folders => {}
                    (found, expected) => assert_eq!(found, expected.as_ref(), "{moment:?} {id}"),
                }
            }
            assert!(found.keys().all(|id| last.files.contains_key(id)), "{moment:?}: {found:?}");
            let past = trees.past(&caller.workspace.to_string(), moment).await.unwrap();
            for file in &past.items.files {
                let Some((_, expected, ..)) = then.files.get(&file.id) else { continue };
                let told = past.tags.iter().find(|(id, _)| *id == file.id).map(|(_, tags)| tags.as_slice());
                assert_eq!(told.unwrap_or_default(), expected.as_slice(), "{moment:?} {}", file.id);
            }
        }
    }
}

async fn run(bench: &Bench, caller: &Caller, steps: &[Step]) {
    let start = Timestamp::from_seconds(1_800_000_000);
    let clock = Arc::new(ManualClock::new(start));
    let context = bench.by_clock(Arc::<ManualClock>::clone(&clock));
    let mut world = World {
        bench,
        caller,
        files: Files::new(context.clone()),
        folders: Folders::new(context.clone()),
        trash: crate::trash::Trash::new(context.clone(), None),
        number: 0,
    };
    let (mut stood, mut has_lost_folders) = (Vec::new(), false);
    for step in steps {
        clock.advance(Duration::from_secs(1));
        has_lost_folders |= world.apply(step).await;
        stood.push(world.stands(context.clock.now()).await);
    }
    check_trees(&context, caller, &stood, has_lost_folders).await;
    let past = Past::new(context.clone());
    let Some(last) = stood.last() else { return };
    for id in last.files.keys() {
        for then in &stood {
            let after = past.file(caller, &id.to_string(), Moment::After(then.position)).await;
            let at = past.file(caller, &id.to_string(), Moment::At(then.at)).await;
            for (how, found) in [("after", after), ("at", at)] {
                match (then.files.get(id), found) {
                    (Some(expected), Ok(found)) => {
                        assert_eq!(&seen(found), expected, "{how} {} {}", then.position, bench.engine());
                    }
                    (None, Err(Error::NotThen(_))) => {}
                    // Nothing was ever written then.
                    (None, Err(Error::Invalid(_))) if then.position == 0 => {}
                    // A folder that held it then is gone for good.
                    (_, Err(Error::Gone(_))) if has_lost_folders => {}
                    (expected, found) => {
                        panic!("{how} {} {}: {found:?}, not {expected:?}", then.position, bench.engine())
                    }
                }
            }
            if let Some((_, _, _, content)) = then.files.get(id) {
                let hash = format!("blake3:{}", blake3::hash(content.as_bytes()).to_hex());
                let (cited, read) = past.cited(caller, &id.to_string(), &hash).await.unwrap();
                assert_eq!((&read, &cited.content_hash), (content, &hash));
            }
        }
    }
}

#[test]
fn files_are_told_as_they_were() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for bench in runtime.block_on(benches()) {
        let workspaces = AtomicU64::new(5_000);
        let mut runner =
            TestRunner::new(Config { cases: 16, failure_persistence: None, ..Config::default() });
        let result = runner.run(&prop::collection::vec(step(), 0..24), |steps| {
            let fresh = caller(u128::from(workspaces.fetch_add(1, Ordering::Relaxed)));
            runtime.block_on(run(&bench, &fresh, &steps));
            Ok(())
        });
        result.unwrap();
    }
}

#[tokio::test]
async fn a_scope_as_of_now_holds() {
    for bench in benches().await {
        let (inside, outside) = (bench.folder("in", None).await, bench.folder("out", None).await);
        let past = Past::new(bench.context.clone());
        let file = bench.file("a.md", Some(outside.id)).await;
        let id = file.id.to_string();
        let outside_then = bench.context.feed.head(bench.caller.workspace).await.unwrap();
        let moved = files::FilePatch { folder_id: Some(Some(inside.id.to_string())), ..Default::default() };
        bench.files.update(&bench.caller, &id, moved).await.unwrap();
        let scoped = bench.scoped(&[inside.id]);
        assert_out_of_scope(past.file(&scoped, &id, Moment::After(outside_then)).await);
        assert_out_of_scope(past.file(&bench.scoped(&[outside.id]), &id, Moment::After(outside_then)).await);
        past.file(&scoped, &id, Moment::After(outside_then + 1)).await.unwrap();
        bench.files.delete(&bench.caller, &id).await.unwrap();
        assert_not_found(past.file(&bench.caller, &id, Moment::After(outside_then)).await, "file");
        assert_not_found(past.cited(&bench.caller, &id, &file.content_hash).await, "file");
    }
}

#[tokio::test]
async fn what_is_too_old_or_not_yet_is_said() {
    for bench in benches().await {
        let file = bench.file("a.md", None).await;
        let (past, id) = (Past::new(bench.context.clone()), file.id.to_string());
        let old = past.file(&bench.caller, &id, Moment::At(Timestamp::from_seconds(1_000))).await;
        assert!(matches!(&old, Err(Error::Gone(said)) if said.contains(" from 20")), "{old:?}");
        let future = past.file(&bench.caller, &id, Moment::At(Timestamp::from_seconds(99_999_999_999))).await;
        assert_eq!(violations(future), pairs(&[("asOf", "future")]));
        let unknown = past.file(&bench.caller, &id, Moment::After(1_000_000)).await;
        assert_eq!(violations(unknown), pairs(&[("asOf", "unknown")]));
        assert_not_found(past.cited(&bench.caller, &id, "blake3:00").await, "version");
    }
}
