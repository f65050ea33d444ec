//! Trees as they were.

use std::collections::HashSet;

use cairn_chassis::clock::Timestamp;
use cairn_chassis::fair_semaphore::{FairSemaphore, Share};
use cairn_proto::document::v1::ConfirmedDocument;

use super::*;
use crate::bodies::Bodies;
use crate::error::Error;
use crate::request::Moment;
use crate::{Browser, IndexPosition, Indexed, Memory, PastWorkspace};

impl World {
    async fn past(&self, scope: Scope) -> Arc<View> {
        let call = Call::within(Duration::from_secs(10));
        self.trees.past(&self.identity(1, scope), &call, Moment::After(1)).await.unwrap()
    }
}

impl State {
    /// What has changed since, as it stood then: folders, and files with their contents.
    fn stood(&mut self, folders: &[(u128, Option<u128>, &str)], files: &[(u128, Option<u128>, &str, &str)]) {
        let spelled = |number: u128| id(number).to_string();
        let folders = folders.iter().map(|(number, parent, name)| proto::TreeFolder {
            id: spelled(*number),
            parent_id: parent.map(spelled),
            name: (*name).into(),
            updated_at: None,
        });
        let folders = folders.collect();
        let mut told = Vec::new();
        for (number, folder, name, content) in files {
            let text = self.text(content);
            told.push(proto::TreeFile {
                id: spelled(*number),
                folder_id: folder.map(spelled),
                name: (*name).into(),
                file_type: proto::FileType::Markdown.into(),
                size_bytes: text.size_bytes,
                content_hash: text.hash,
                updated_at: None,
            });
        }
        self.past = Some(proto::ReadPastTreeResponse {
            at: Some(Timestamp::from_seconds(1_800_000_000).to_proto()),
            items: Some(TreeItems { folders, files: told, ..TreeItems::default() }),
            ..proto::ReadPastTreeResponse::default()
        });
    }

    fn gone(&mut self, kind: Kind, number: u128) {
        let reference = DocumentRef { kind: kind.into(), id: id(number).to_string() };
        self.past.as_mut().unwrap().gone.push(reference);
    }
}

/// The paths below /files that a view shows.
fn shown(view: &View) -> Vec<String> {
    let mut found = Vec::new();
    let mut open: Vec<(Node, String)> = vec![(Fixed::Files.node(), "/files".to_owned())];
    while let Some((folder, path)) = open.pop() {
        for child in view.children(folder) {
            let below = format!("{path}/{}", view.name(*child));
            found.push(below.clone());
            open.push((*child, below));
        }
    }
    found.sort();
    found
}

#[tokio::test]
async fn what_has_changed_since_stands_where_it_stood() {
    let world = World::new(PLENTY).await;
    {
        let mut state = world.state();
        state.folder(1, None, "in");
        state.folder(2, None, "new");
        state.folder(5, None, "after");
        state.file(3, Some(1), "3.md", "edited");
        state.file(4, Some(2), "4.md", "moved");
        state.file(6, Some(1), "6.md", "new");
        state.file(7, Some(5), "7.md", "as it is");
        state.file(9, None, "9.md", "moved");
        state.table(10, 1, 3);
        state.stood(
            &[(5, None, "before"), (8, Some(5), "deleted since")],
            &[
                (3, Some(1), "3.md", "as it was"),
                (4, Some(1), "4.md", "moved"),
                (9, Some(8), "nine.md", "moved"),
            ],
        );
        state.gone(Kind::Folder, 2);
        state.gone(Kind::File, 6);
    }
    let then = world.past(Scope::All).await;
    assert_eq!(
        shown(&then),
        [
            "/files/before",
            "/files/before/7.md",
            "/files/before/deleted since",
            "/files/before/deleted since/nine.md",
            "/files/in",
            "/files/in/3.md",
            "/files/in/4.md",
        ]
    );
    assert_eq!(then.size(then.base.node(id(3)).unwrap()), 9);
    assert!(then.children(Fixed::Databases.node()).is_empty());
    assert_eq!(then.children(Fixed::Sources.node()), [Fixed::SourcesReadme.node()]);
    let readme = String::from_utf8(then.text(Fixed::Readme.node()).unwrap().to_vec()).unwrap();
    assert!(readme.contains("as it was then") && readme.contains("4 files, 3 folders"), "{readme}");
    let notes = then.past().unwrap().notes();
    assert_eq!(notes.len(), 1);
    assert!(notes[0].message.contains("as they stood at 2027-01-15T08:00:00"), "{notes:?}");
    assert_eq!(world.files().await.len(), 8, "the tree of now is as it was");
}

#[tokio::test]
async fn what_stood_in_a_folder_that_was_not_there_is_not_there_either() {
    let world = World::new(PLENTY).await;
    {
        let mut state = world.state();
        state.folder(1, None, "in trash then");
        state.folder(2, Some(1), "with it");
        state.file(3, Some(2), "3.md", "with it, too");
        state.file(4, Some(1), "4.md", "moved into it since");
        state.file(5, None, "5.md", "moved out of it since");
        state.file(6, None, "6.md", "nobody knows of its folder");
        state.stood(&[], &[(4, None, "4.md", "x"), (5, Some(2), "5.md", "x"), (6, Some(60), "6.md", "x")]);
        state.gone(Kind::Folder, 1);
    }
    assert_eq!(shown(&*world.past(Scope::All).await), ["/files/4.md"]);
}

#[tokio::test]
async fn a_scope_sees_no_more_of_then_than_of_now() {
    let world = World::new(PLENTY).await;
    {
        let mut state = world.state();
        state.folder(1, None, "mine");
        state.folder(2, None, "theirs");
        state.folder(7, Some(2), "left with its file");
        state.file(3, Some(1), "3.md", "here all the time");
        state.file(4, Some(2), "4.md", "left since");
        state.file(5, Some(1), "5.md", "came since");
        state.file(8, Some(7), "8.md", "left with its folder");
        state.file(9, Some(1), "9.md", "was in the folder that left");
        state.stood(
            &[(7, Some(1), "left with its file")],
            &[(4, Some(1), "4.md", "x"), (5, Some(2), "5.md", "x"), (9, Some(7), "9.md", "x")],
        );
    }
    let mine = world.past(Scope::Folders([FolderId(id(1))].into())).await;
    let expected = [
        "/files/mine",
        "/files/mine/3.md",
        "/files/mine/left with its file",
        "/files/mine/left with its file/9.md",
    ];
    assert_eq!(shown(&mine), expected);
    let readme = String::from_utf8(mine.text(Fixed::Readme.node()).unwrap().to_vec()).unwrap();
    assert!(!readme.contains("theirs"), "{readme}");
    assert_eq!(shown(&*world.past(Scope::All).await).len(), 8);
}

#[tokio::test]
async fn a_moment_that_nobody_knows_is_the_owners_error() {
    let world = World::new(PLENTY).await;
    world.state().file(1, None, "a", "x");
    let call = Call::within(Duration::from_secs(10));
    let asked = world.trees.past(&world.identity(1, Scope::All), &call, Moment::After(1)).await;
    assert!(matches!(asked, Err(Error::Upstream(_))), "{asked:?}");
}

#[tokio::test]
async fn documents_are_told_as_they_stood() {
    let world = World::new(PLENTY).await;
    {
        let mut state = world.state();
        state.folder(1, None, "after");
        state.file(3, Some(1), "3.md", "edited");
        state.file(6, Some(1), "6.md", "new");
        state.file(7, Some(1), "7.md", "as it is");
        state.table(10, 1, 3);
        state.stood(&[(1, None, "before")], &[(3, Some(1), "three.md", "as it was")]);
        state.gone(Kind::File, 6);
    }
    let call = Call::within(Duration::from_secs(10));
    let view = world.past(Scope::All).await;
    let then = PastWorkspace::new(Arc::clone(&view), world.trees.holder(&view));
    let now = |kind: Kind, number: u128| ConfirmedDocument {
        r#ref: Some(DocumentRef { kind: kind.into(), id: id(number).to_string() }),
        database_id: Some(id(10).to_string()),
        ..ConfirmedDocument::default()
    };
    let path = |then: &PastWorkspace, kind, number| Some(then.past_version(&now(kind, number))?.path);
    assert_eq!(path(&then, Kind::File, 3).as_deref(), Some("/before/three.md"));
    assert_eq!(path(&then, Kind::File, 7).as_deref(), Some("/before/7.md"));
    assert_eq!(path(&then, Kind::Record, 11).as_deref(), Some("/before/d/a/b"));
    assert_eq!(path(&then, Kind::File, 6), None);
    assert_eq!(path(&then, Kind::Ingested, 7), None);
    let changed = then.changed_files();
    assert_eq!(changed.iter().map(|file| file.id).collect::<Vec<_>>(), [id(3)]);
    let hash = format!("blake3:{}", blake3::hash(b"as it was").to_hex());
    assert_eq!((&changed[0].document.content_hash, changed[0].size), (&hash, 9));
    let texts = then.texts(&call, &changed).await.unwrap();
    assert_eq!(texts[&id(3)], "as it was");

    let untold = DocumentRef { kind: Kind::Database.into(), id: id(10).to_string() };
    world.state().past.as_mut().unwrap().untold.push(untold);
    let view = world.past(Scope::All).await;
    let then = PastWorkspace::new(Arc::clone(&view), world.trees.holder(&view));
    assert_eq!(path(&then, Kind::Record, 11), None, "its database has changed");
}

#[tokio::test]
async fn folders_are_told_with_the_names_and_places_of_then() {
    let world = World::new(PLENTY).await;
    {
        let mut state = world.state();
        state.folder(1, None, "in");
        state.folder(2, None, "moved and renamed");
        state.folder(5, Some(2), "with it");
        state.folder(6, None, "new");
        state.file(3, Some(2), "3.md", "edited");
        state.table(10, 1, 3);
        state.table(20, 1, 3);
        state.stood(&[(2, Some(1), "old")], &[(3, Some(2), "3.md", "as it was")]);
        state.gone(Kind::Folder, 6);
        let past = state.past.as_mut().unwrap();
        past.untold.push(DocumentRef { kind: Kind::Database.into(), id: id(20).to_string() });
        past.tags.push(proto::FileTags { file_id: id(3).to_string(), tags: vec!["a".into()] });
    }
    let view = world.past(Scope::All).await;
    let then = PastWorkspace::new(Arc::clone(&view), world.trees.holder(&view));
    let mut told = then.containers(9);
    told.sort_by_key(|container| container.id);
    let told: Vec<_> = told.iter().map(|one| (one.id, one.parent, &*one.name, one.is_database)).collect();
    let expected = [
        (id(1), None, "in", false),
        (id(2), Some(id(1)), "old", false),
        (id(5), Some(id(2)), "with it", false),
        (id(10), Some(id(1)), "d", true),
    ];
    assert_eq!(told, expected);
    assert!(then.containers(3).iter().all(|container| !container.is_database), "folders come first");
    assert_eq!(then.folders_below(id(1)), Some(HashSet::from([1, 2, 5].map(id))));
    assert_eq!(then.folders_below(id(5)), Some(HashSet::from([id(5)])));
    for none in [3, 6, 10, 99] {
        assert_eq!(then.folders_below(id(none)), None, "{none}");
    }
    assert_eq!(then.changed_files()[0].tags, ["a"]);

    let view = world.past(Scope::Folders([FolderId(id(5))].into())).await;
    let scoped = PastWorkspace::new(Arc::clone(&view), world.trees.holder(&view));
    assert_eq!((scoped.folders_below(id(1)), scoped.folders_below(id(2))), (None, None));
    assert_eq!(scoped.folders_below(id(5)), Some(HashSet::from([id(5)])));
    let mut told: Vec<Uuid> = scoped.containers(9).iter().map(|container| container.id).collect();
    told.sort();
    assert_eq!(told, [1, 2, 5].map(id), "what leads to it is told, and no database elsewhere");
}

#[derive(Debug)]
struct NothingIndexed;

impl IndexPosition for NothingIndexed {
    fn position(&self, _: WorkspaceId) -> Indexed {
        Indexed::default()
    }
}

#[tokio::test]
async fn whoever_looks_at_what_was_has_a_turn() {
    let world = World::new(PLENTY).await;
    {
        let mut state = world.state();
        state.file(1, None, "1.md", "x");
        state.stood(&[], &[]);
    }
    let max_wait = Duration::from_secs(600);
    let share = Share { at_once: 1, per_workspace: 1, waiting: 0, max_wait };
    let browser = Browser {
        trees: world.trees.clone(),
        bodies: Bodies::new(Memory::default()),
        running: FairSemaphore::new(share),
        indexed: Arc::new(NothingIndexed),
        clock: Arc::new(SystemClock),
    };
    let call = Call::within(Duration::from_secs(10));
    let identity = world.identity(1, Scope::All);
    let look = || browser.past(&identity, &call, Moment::After(1));
    let first = look().await.unwrap();
    let copy = first.clone();
    drop(copy);
    assert!(matches!(look().await, Err(Error::Busy)), "it is looked at still");
    drop(first);
    look().await.unwrap();
}
