//! What is told of a workspace's tree: all of it in pages, and what has changed since.

use std::collections::BTreeMap;

use cairn_chassis::feed::Kind;
use cairn_proto::ids::DocumentId;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config as Runs, TestRunner};
use serde_json::json;

use super::memory_rules::of_file;
use super::tables::Table;
use super::*;
use crate::databases::Databases;
use crate::databases::properties::{PropertyPatch, SettingsDraft};
use crate::files::FilePatch;
use crate::memories;
use crate::model::{DatabaseQuery, MemberKind, MemberTarget, PropertyType, TreeMemory};
use crate::records;
use crate::tree::{TextRef, TreeChanges, TreeItems, Trees};

/// A copy that follows.
#[derive(Debug, Default, PartialEq)]
struct Copy {
    /// Each item as it was told, and the database of a record.
    items: BTreeMap<(Kind, DocumentId), (String, Option<DocumentId>)>,
    position: u64,
}

impl Copy {
    fn take(&mut self, items: TreeItems) {
        let mut put = |kind, id, text: String, database| {
            self.items.insert((kind, DocumentId(id)), (text, database));
        };
        items.folders.iter().for_each(|one| put(Kind::Folder, one.id.0, format!("{one:?}"), None));
        items.files.iter().for_each(|one| put(Kind::File, one.id.0, format!("{one:?}"), None));
        items.databases.iter().for_each(|one| put(Kind::Database, one.id.0, format!("{one:?}"), None));
        items.memories.iter().for_each(|one| put(Kind::Memory, one.id.0, format!("{one:?}"), None));
        for one in &items.records {
            put(Kind::Record, one.id.0, format!("{one:?}"), Some(DocumentId(one.database_id.0)));
        }
    }

    fn follow(&mut self, changes: TreeChanges) {
        self.take(changes.items);
        for (kind, id) in changes.gone {
            self.items.remove(&(kind, id));
            // A folder takes its databases to trash without a word on their records.
            self.items.retain(|_, (_, database)| *database != Some(id));
        }
        self.position = changes.position;
    }

    async fn renew(&mut self, trees: &Trees, workspace: &str) {
        loop {
            let changes = trees.changes(workspace, self.position).await.unwrap();
            let head = changes.head;
            self.follow(changes);
            if self.position == head {
                return;
            }
        }
    }

    async fn of(trees: &Trees, workspace: &str) -> Self {
        let mut copy = Self::default();
        let mut token = String::new();
        loop {
            let page = trees.list(workspace, &token).await.unwrap();
            copy.position = if token.is_empty() { page.position } else { copy.position };
            copy.take(page.items);
            if page.next.is_empty() {
                return copy;
            }
            token = page.next;
        }
    }

    fn count(&self, kind: Kind) -> usize {
        self.items.keys().filter(|(found, _)| *found == kind).count()
    }
}

impl Bench {
    fn trees(&self) -> (Trees, String) {
        (Trees::new(self.context.clone()), self.caller.workspace.to_string())
    }
}

#[tokio::test]
async fn changes_name_all_that_a_copy_needs() {
    for bench in benches().await {
        let (trees, workspace) = bench.trees();
        let folder = bench.folder("a", None).await;
        let inner = bench.folder("b", Some(folder.id)).await;
        let file = bench.file("one.md", Some(inner.id)).await;
        let mut table = Table::new(&bench, Some(inner.id)).await;
        table
            .add(
                "Next",
                PropertyType::Relation,
                SettingsDraft { relation_database_id: Some(table.id()), ..SettingsDraft::default() },
            )
            .await;
        table.fill().await;
        let paged = table.make(json!({"Name": "paged"})).await.record;
        let draft = records::RecordDraft {
            content_file_id: Some(Some(file.id.to_string())),
            ..records::RecordDraft::default()
        };
        table.records.update(&bench.caller, &table.id(), &paged.id.to_string(), draft).await.unwrap();
        bench.memory("m", vec![of_file(file.id)]).await;

        let mut copy = Copy::of(&trees, &workspace).await;
        let counts = [Kind::Folder, Kind::File, Kind::Database, Kind::Record, Kind::Memory];
        assert_eq!(counts.map(|kind| copy.count(kind)), [2, 1, 1, 5, 1], "{}", bench.engine());
        let still = trees.changes(&workspace, copy.position).await.unwrap();
        let head = copy.position;
        assert_eq!(still, TreeChanges { position: head, head, ..TreeChanges::default() });
        let other = trees.changes(&workspace, head + 7).await.unwrap();
        assert_eq!((other.head, other.items, other.gone), (head, TreeItems::default(), Vec::new()));

        // A file that is the body of a record.
        let edit = FilePatch { content: Some("edited".into()), ..FilePatch::default() };
        bench.files.update(&bench.caller, &file.id.to_string(), edit).await.unwrap();
        let told = trees.changes(&workspace, copy.position).await.unwrap();
        assert_eq!((told.items.files.len(), told.items.records.len(), told.gone.len()), (1, 1, 0));
        // Folders are told of by themselves, whatever they hold.
        bench
            .folders
            .update(
                &bench.caller,
                &folder.id.to_string(),
                folders::FolderPatch { name: Some("z".into()), ..folders::FolderPatch::default() },
            )
            .await
            .unwrap();
        copy.renew(&trees, &workspace).await;
        assert_eq!(copy, Copy::of(&trees, &workspace).await, "{}", bench.engine());

        // Where a field stands shows in each record.
        let name = table.field("Name");
        let patch = PropertyPatch { position: Some(3), ..PropertyPatch::default() };
        table.databases.update_property(&bench.caller, &table.id(), &name, patch).await.unwrap();
        copy.renew(&trees, &workspace).await;
        assert_eq!(copy, Copy::of(&trees, &workspace).await, "{}", bench.engine());

        bench.folders.delete(&bench.caller, &inner.id.to_string()).await.unwrap();
        copy.renew(&trees, &workspace).await;
        assert_eq!(counts.map(|kind| copy.count(kind)), [1, 0, 0, 0, 1], "{}", bench.engine());
        bench.trash().restore(&bench.caller, Kind::Folder, &inner.id.to_string()).await.unwrap();
        copy.renew(&trees, &workspace).await;
        assert_eq!(counts.map(|kind| copy.count(kind)), [2, 1, 1, 5, 1], "{}", bench.engine());
        assert_eq!(copy, Copy::of(&trees, &workspace).await, "{}", bench.engine());
        assert_eq!(
            trees.list(&caller(2).workspace.to_string(), "").await.unwrap().items,
            TreeItems::default()
        );
    }
}

#[derive(Debug, Clone)]
enum Step {
    Folder(usize),
    File(usize),
    Record(usize),
    Edit(usize),
    Move(usize, usize),
    MoveFile(usize, usize),
    MoveDatabase(usize),
    Drop(usize),
    Back,
    Renew,
}

fn step() -> impl Strategy<Value = Step> {
    let place = || 0..6_usize;
    prop_oneof![
        place().prop_map(Step::Folder),
        place().prop_map(Step::File),
        place().prop_map(Step::Record),
        place().prop_map(Step::Edit),
        (place(), place()).prop_map(|(one, other)| Step::Move(one, other)),
        (place(), place()).prop_map(|(one, other)| Step::MoveFile(one, other)),
        place().prop_map(Step::MoveDatabase),
        place().prop_map(Step::Drop),
        Just(Step::Back),
        Just(Step::Renew),
    ]
}

/// What is refused (a circle, something in trash) changes nothing.
async fn carry_out(bench: &Bench, table: &Table, steps: &[Step]) {
    let (trees, workspace) = bench.trees();
    let mut copy = Copy::of(&trees, &workspace).await;
    let (mut folders, mut files) = (Vec::new(), Vec::new());
    for step in steps {
        let at = |place: &usize| folders.get(*place).copied();
        match step {
            Step::Folder(parent) => {
                if let Ok(made) = bench.folders.create(&bench.caller, folder_draft("f", at(parent))).await {
                    folders.push(made.item.id);
                }
            }
            Step::File(folder) => {
                if let Ok(made) = bench.files.create(&bench.caller, draft("a.md", at(folder))).await {
                    files.push(made.item.id);
                }
            }
            Step::Record(file) => {
                let draft = records::RecordDraft {
                    values: json!({"Name": "r", "File": files.get(*file)}).to_string(),
                    content_file_id: Some(files.get(*file).map(|id: &FileId| id.to_string())),
                    allow_names: true,
                    ..records::RecordDraft::default()
                };
                let _refused = table.records.create(&bench.caller, &table.id(), draft).await;
            }
            Step::Edit(file) => {
                let patch =
                    FilePatch { content: Some(format!("{file}{}", copy.position)), ..FilePatch::default() };
                if let Some(file) = files.get(*file) {
                    let _refused = bench.files.update(&bench.caller, &file.to_string(), patch).await;
                }
            }
            Step::Move(folder, parent) => {
                if let Some(folder) = at(folder) {
                    let patch = move_to(at(parent));
                    let _refused = bench.folders.update(&bench.caller, &folder.to_string(), patch).await;
                }
            }
            Step::MoveFile(file, folder) => {
                let to = at(folder).map(|id: FolderId| id.to_string());
                if let Some(file) = files.get(*file) {
                    let patch = FilePatch { folder_id: Some(to), ..FilePatch::default() };
                    let _refused = bench.files.update(&bench.caller, &file.to_string(), patch).await;
                }
            }
            Step::MoveDatabase(folder) => {
                let patch = databases_patch(at(folder));
                let _refused = table.databases.update(&bench.caller, &table.id(), patch).await;
            }
            Step::Drop(folder) => {
                if let Some(folder) = at(folder) {
                    let _refused = bench.folders.delete(&bench.caller, &folder.to_string()).await;
                }
            }
            Step::Back => {
                if let Some(first) = bench.in_trash().await.first() {
                    let (kind, id) = (first.deletion.kind, first.deletion.item_id.clone());
                    bench.trash().restore(&bench.caller, kind, &id).await.unwrap();
                }
            }
            Step::Renew => copy.renew(&trees, &workspace).await,
        }
    }
    copy.renew(&trees, &workspace).await;
    assert_eq!(copy, Copy::of(&trees, &workspace).await, "{}: {steps:?}", bench.engine());
}

fn databases_patch(folder: Option<FolderId>) -> crate::databases::DatabasePatch {
    crate::databases::DatabasePatch {
        folder_id: Some(folder.map(|id| id.to_string())),
        ..crate::databases::DatabasePatch::default()
    }
}

#[test]
fn a_copy_that_follows_is_one_that_is_drawn_up_anew() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for mut bench in runtime.block_on(benches()) {
        let workspaces = AtomicU64::new(5_000);
        let mut runner = TestRunner::new(Runs { failure_persistence: None, ..Runs::default() });
        let steps = prop::collection::vec(step(), 0..30);
        let bench = &mut bench;
        for _ in 0..16 {
            bench.caller = caller(u128::from(workspaces.fetch_add(1, Ordering::Relaxed)));
            let steps = steps.new_tree(&mut runner).unwrap().current();
            runtime.block_on(async {
                let table = Table::new(bench, None).await;
                carry_out(bench, &table, &steps).await;
            });
        }
    }
}

#[tokio::test]
async fn pages_hold_everything_once_though_it_changes_meanwhile() {
    for bench in benches().await {
        let (trees, workspace) = bench.trees();
        let databases = Databases::new(bench.context.clone());
        let mut made = Vec::new();
        for number in 0..210 {
            let draft = super::tables::named(&format!("d{number}"), None);
            made.push(databases.create(&bench.caller, draft).await.unwrap().item.id);
        }
        let first = trees.list(&workspace, "").await.unwrap();
        assert_eq!((first.items.databases.len(), first.next.is_empty()), (200, false), "{}", bench.engine());
        databases.delete(&bench.caller, &made[0].to_string()).await.unwrap();
        databases.delete(&bench.caller, &made[205].to_string()).await.unwrap();
        let second = trees.list(&workspace, &first.next).await.unwrap();
        assert_eq!((second.items.databases.len(), second.next.as_str()), (9, ""), "{}", bench.engine());
        assert_eq!(second.position, first.position + 2);
        let mut copy = Copy { position: first.position, ..Copy::default() };
        copy.take(first.items);
        copy.take(second.items);
        copy.renew(&trees, &workspace).await;
        assert_eq!(copy.count(Kind::Database), 208);
        for bad in ["nonsense", "files:", "folders:x", "files:\0"] {
            assert_eq!(violations(trees.list(&workspace, bad).await), pairs(&[("pageToken", "invalid")]));
        }
        assert_eq!(violations(trees.changes("x", 0).await), pairs(&[("workspaceId", "invalid")]));
    }
}

#[tokio::test]
async fn many_changes_come_in_parts() {
    for bench in benches().await {
        let (trees, workspace) = bench.trees();
        for number in 0..103 {
            bench.memory(&format!("m{number}"), Vec::new()).await;
        }
        let first = trees.changes(&workspace, 0).await.unwrap();
        assert_eq!((first.position, first.head, first.items.memories.len()), (100, 103, 100));
        let rest = trees.changes(&workspace, 100).await.unwrap();
        assert_eq!((rest.position, rest.head, rest.items.memories.len()), (103, 103, 3));
    }
}

#[tokio::test]
async fn texts_are_what_the_tree_stands_for() {
    for bench in benches().await {
        let (trees, workspace) = bench.trees();
        let file = bench.file("one.md", None).await;
        let edit = FilePatch { content: Some("edited".into()), ..FilePatch::default() };
        let edited = bench.files.update(&bench.caller, &file.id.to_string(), edit).await.unwrap().item;
        let mut table = Table::new(&bench, None).await;
        table.add("Notes", PropertyType::Text, SettingsDraft::default()).await;
        table.add("Name", PropertyType::Text, SettingsDraft::default()).await;
        let second = table.database.properties.last().unwrap().id.to_string();
        let id = table
            .make(json!({
                "Points": 1.5, "Done": true, "Due": "2026-11-20", "Status": "Todo", "Tags": ["Doing", "Todo"],
                "Notes": "first\n\nsecond: line", "File": file.id,
            }))
            .await
            .record
            .id;
        let primary = table.database.primary().unwrap().id.to_string();
        let draft = records::RecordDraft {
            values: json!({ primary: "yes", second: "twice" }).to_string(),
            ..records::RecordDraft::default()
        };
        table.records.update(&bench.caller, &table.id(), &id.to_string(), draft).await.unwrap();

        let refs = [
            Some(TextRef::Body(file.content_hash.clone())),
            None,
            Some(TextRef::FrontMatter { record: id, has_references: true }),
            Some(TextRef::FrontMatter { record: id, has_references: false }),
            Some(TextRef::Body(edited.content_hash.clone())),
            Some(TextRef::Body("blake3:00".into())),
            Some(TextRef::Schema(table.database.id)),
        ];
        let read = trees.texts(&workspace, &refs).await.unwrap();
        assert_eq!(read.read, refs.len());
        let texts: BTreeMap<usize, (String, String)> =
            read.texts.into_iter().map(|(place, text, hash)| (place, (text, hash))).collect();
        assert_eq!(texts.keys().copied().collect::<Vec<_>>(), [0, 2, 3, 4, 6], "{}", bench.engine());
        assert_eq!((texts[&0].0.as_str(), texts[&4].0.as_str()), ("content of one.md", "edited"));
        let bare = "---\nName: \"yes\"\nPoints: 1.5\nDone: true\nDue: 2026-11-20\nStatus: Todo\nTags:\n  - Doing\n  - Todo\n\
                    Notes: |-\n  first\n\n  second: line\nName (2): twice\n---\n";
        assert_eq!(texts[&3].0, bare, "{}", bench.engine());
        let line = format!("File: \"{}\"\nStatus", file.id);
        assert_eq!(texts[&2].0, bare.replace("Status", &line), "{}", bench.engine());
        let schema = &texts[&6].0;
        assert!(
            schema.starts_with("# Tasks\n") && schema.contains("| Status | select | Todo, Doing, Finished |")
        );

        let listed = trees.list(&workspace, "").await.unwrap().items;
        let (record, database) = (&listed.records[0], &listed.databases[0]);
        let bare = record.without_references.as_ref().unwrap();
        for (told, place) in [(&record.front_matter, 2), (bare, 3), (&database.schema, 6)] {
            assert_eq!((told.size_bytes, &told.hash), (texts[&place].0.len() as u64, &texts[&place].1));
        }
        let elsewhere = trees.texts(&caller(2).workspace.to_string(), &refs).await.unwrap();
        assert_eq!(elsewhere.texts, Vec::new());
        let many = vec![None; 1_001];
        assert_eq!(violations(trees.texts(&workspace, &many).await), pairs(&[("refs", "out_of_range")]));
    }
}

#[tokio::test]
async fn large_texts_come_in_parts() {
    for bench in benches().await {
        let (trees, workspace) = bench.trees();
        let mut refs = Vec::new();
        for letter in ["a", "b", "c", "d", "e"] {
            let large = files::FileDraft { content: letter.repeat(5 << 20), ..draft(letter, None) };
            let made = bench.files.create(&bench.caller, large).await.unwrap().item;
            refs.push(Some(TextRef::Body(made.content_hash)));
        }
        let first = trees.texts(&workspace, &refs).await.unwrap();
        assert_eq!((first.read, first.texts.len()), (4, 4), "{}", bench.engine());
        let rest = trees.texts(&workspace, &refs[4..]).await.unwrap();
        assert_eq!((rest.read, rest.texts.len()), (1, 1));
    }
}

#[tokio::test]
async fn memories_are_told_with_their_members() {
    for bench in benches().await {
        let (trees, workspace) = bench.trees();
        let file = bench.file("one.md", None).await;
        let table = Table::new(&bench, None).await;
        let of_database = memories::MemberDraft {
            kind: Some(MemberKind::Database),
            database_id: Some(table.id()),
            query: Some(DatabaseQuery { search: "x".into(), ..DatabaseQuery::default() }),
            ..memories::MemberDraft::default()
        };
        bench.memory("first", vec![of_database, of_file(file.id)]).await;
        bench.memory("second", vec![of_file(file.id)]).await;
        bench.files.delete(&bench.caller, &file.id.to_string()).await.unwrap();
        let listed = trees.list(&workspace, "").await.unwrap().items.memories;
        let kinds = |memory: &TreeMemory| -> Vec<_> {
            memory.members.iter().map(|member| (member.target, member.is_query)).collect()
        };
        let (of_table, of_file) = (MemberTarget::Database(table.database.id), MemberTarget::File(file.id));
        assert_eq!(listed.len(), 2, "{}", bench.engine());
        assert_eq!(kinds(&listed[0]), [(of_table, true), (of_file, false)]);
        assert_eq!(kinds(&listed[1]), [(of_file, false)]);
    }
}
