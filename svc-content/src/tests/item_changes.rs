//! One change to many items in one call.

use cairn_chassis::feed::Kind;
use serde_json::json;

use super::activity_rules::token;
use super::tables::Table;
use super::*;
use crate::activity::{Selection, Undos};
use crate::batch::{Batches, FileMatch, ItemAction, ItemSelection, ItemsChanged, Write};
use crate::files::TagChange;

impl Bench {
    async fn change_items(
        &self,
        caller: &Caller,
        wanted: ItemSelection,
        action: ItemAction,
    ) -> Result<ItemsChanged, Error> {
        Batches::new(self.context.clone()).change_items(caller, wanted, action, false).await
    }

    async fn tags_of(&self, file: &File) -> Vec<String> {
        self.files.get(&self.caller, &file.id.to_string()).await.unwrap().0.tags
    }

    async fn path_of(&self, file: &File) -> Option<String> {
        let found = self.files.get(&self.caller, &file.id.to_string()).await;
        found.ok().map(|(file, _)| file.path)
    }
}

fn items(files: &[&File], folders: &[&Folder]) -> ItemSelection {
    let folders = folders.iter().map(|folder| (Kind::Folder, folder.id.to_string()));
    let files = files.iter().map(|file| (Kind::File, file.id.to_string()));
    ItemSelection::Named(files.chain(folders).collect())
}

fn into(folder: &Folder) -> ItemAction {
    ItemAction::Move(Some(folder.id.to_string()))
}

fn tag(add: &[&str], remove: &[&str]) -> ItemAction {
    let owned = |tags: &[&str]| tags.iter().map(|tag| (*tag).to_owned()).collect();
    ItemAction::Tag(TagChange { add: owned(add), remove: owned(remove) })
}

fn counts(done: &ItemsChanged) -> (usize, usize, usize, u64) {
    (done.selected, done.changed, done.unchanged, done.items)
}

fn why(done: &ItemsChanged) -> Vec<String> {
    done.skipped.iter().map(|one| one.why.to_string()).collect()
}

#[tokio::test]
async fn what_can_be_done_is_done_in_one_write_and_what_cannot_is_told() {
    for bench in benches().await {
        let (home, away) = (bench.folder("home", None).await, bench.folder("away", None).await);
        let a = bench.file("a.md", Some(home.id)).await;
        let there = bench.file("b.md", Some(away.id)).await;
        let mut wanted = vec![(Kind::File, missing_file()), (Kind::File, "no id\0".to_owned())];
        wanted.extend([(Kind::Folder, away.id.to_string()), (Kind::Memory, missing_file())]);
        wanted.extend([&a, &there, &a].map(|file| (Kind::File, file.id.to_string())));
        let before = bench.activity().await.len();
        let done =
            bench.change_items(&bench.caller, ItemSelection::Named(wanted), into(&away)).await.unwrap();
        assert_eq!(counts(&done), (6, 1, 1, 1), "{}: {:?}", bench.engine(), why(&done));
        let kinds: Vec<Kind> = done.skipped.iter().map(|one| one.kind).collect();
        assert_eq!(kinds, [Kind::File, Kind::File, Kind::Folder, Kind::Memory]);
        assert!(matches!(&done.skipped[0].why, Error::NotFound { .. }));
        assert!(matches!(&done.skipped[2].why, Error::Invalid(broken) if broken[0].code == "cycle"));
        assert_eq!(bench.path_of(&a).await.as_deref(), Some("/away/a.md"), "{}", bench.engine());

        let noted = bench.activity().await;
        assert_eq!(noted.len(), before + 1, "{}", bench.engine());
        assert_eq!((Some(noted[0].id.write()), noted[0].id.position), (done.write, done.position));
        // Without anything left to do, nothing is written.
        let again = bench.change_items(&bench.caller, items(&[&a], &[]), into(&away)).await.unwrap();
        assert_eq!((counts(&again), again.write, again.position), ((1, 0, 1, 0), None, 0));
    }
}

#[tokio::test]
async fn tags_come_and_go_and_the_rest_of_them_stays() {
    for bench in benches().await {
        let home = bench.folder("home", None).await;
        let (a, b) = (bench.file("a.md", None).await, bench.file("b.md", None).await);
        bench.change_items(&bench.caller, items(&[&a], &[]), tag(&["own", "old"], &[])).await.unwrap();
        let done = bench
            .change_items(&bench.caller, items(&[&a, &b], &[&home]), tag(&["new"], &["old"]))
            .await
            .unwrap();
        assert_eq!(counts(&done), (3, 2, 0, 2), "{}", bench.engine());
        assert_eq!(done.skipped[0].kind, Kind::Folder);
        assert_eq!(
            (bench.tags_of(&a).await, bench.tags_of(&b).await),
            (vec!["own".into(), "new".into()], vec!["new".to_owned()])
        );
        let fifty: Vec<String> = (0..49).map(|number| format!("t{number}")).collect();
        let many = ItemAction::Tag(TagChange { add: fifty, remove: Vec::new() });
        let done = bench.change_items(&bench.caller, items(&[&a, &b], &[]), many).await.unwrap();
        assert_eq!((counts(&done), done.skipped[0].id.as_str()), ((2, 1, 0, 1), a.id.to_string().as_str()));
        let odd = bench.change_items(&bench.caller, items(&[&a], &[]), tag(&[" "], &[])).await;
        assert_eq!(violations(odd), pairs(&[("add[0]", "required")]));
    }
}

#[tokio::test]
async fn what_stands_in_a_folder_goes_and_comes_back_with_it() {
    for bench in benches().await {
        let outer = bench.folder("outer", None).await;
        let inner = bench.folder("inner", Some(outer.id)).await;
        let (below, aside) =
            (bench.file("below.md", Some(inner.id)).await, bench.file("aside.md", None).await);
        let wanted = items(&[&below, &aside], &[&inner, &outer]);
        let done = bench.change_items(&bench.caller, wanted, ItemAction::Trash).await.unwrap();
        assert_eq!(counts(&done), (4, 4, 0, 4), "{}: {:?}", bench.engine(), why(&done));
        let in_trash: Vec<String> =
            bench.in_trash().await.into_iter().map(|entry| entry.deletion.name).collect();
        assert_eq!(in_trash.len(), 2, "{in_trash:?}");
        // Below an item that was deleted by itself: the later deletion is restored first, in whatever order they are
        // requested.
        let wanted = items(&[&aside], &[&outer]);
        let done = bench.change_items(&bench.caller, wanted, ItemAction::Restore).await.unwrap();
        assert_eq!(counts(&done), (2, 2, 0, 4), "{}: {:?}", bench.engine(), why(&done));
        bench.change_items(&bench.caller, items(&[&below], &[]), ItemAction::Trash).await.unwrap();
        bench.change_items(&bench.caller, items(&[], &[&outer]), ItemAction::Trash).await.unwrap();
        let done = bench
            .change_items(&bench.caller, items(&[&below], &[&outer]), ItemAction::Restore)
            .await
            .unwrap();
        assert_eq!(counts(&done), (2, 2, 0, 3), "{}: {:?}", bench.engine(), why(&done));
        assert_eq!(
            bench.path_of(&below).await.as_deref(),
            Some("/outer/inner/below.md"),
            "{}",
            bench.engine()
        );
    }
}

#[tokio::test]
async fn one_undo_takes_all_of_it_back() {
    for bench in benches().await {
        let (home, away) = (bench.folder("home", None).await, bench.folder("away", None).await);
        let inner = bench.folder("inner", Some(home.id)).await;
        let (a, b) = (bench.file("a.md", Some(home.id)).await, bench.file("b.md", Some(home.id)).await);
        let agent = token(&bench, "agent");
        for action in [into(&away), tag(&["t"], &[]), ItemAction::Trash] {
            let folders: &[&Folder] = if matches!(action, ItemAction::Tag(_)) { &[] } else { &[&inner] };
            let wanted = items(&[&a, &b], folders);
            let done = bench.change_items(&agent, wanted, action).await.unwrap();
            let write = done.write.unwrap().to_string();
            let selection = Selection { write: Some(write), ..Selection::default() };
            let undos = Undos::new(bench.context.clone());
            let undone = undos.execute(&bench.caller, selection.clone()).await.unwrap();
            assert_eq!(
                (undone.steps.len(), undone.left_alone.len()),
                (done.changed, 0),
                "{}",
                bench.engine()
            );
            assert_eq!(bench.path_of(&b).await.as_deref(), Some("/home/b.md"), "{}", bench.engine());
            assert!(bench.tags_of(&a).await.is_empty());
            let again = undos.execute(&bench.caller, selection).await.unwrap();
            assert!(again.steps.is_empty(), "{}", bench.engine());
        }
        let undos = Undos::new(bench.context.clone());
        for odd in ["", "x", "1.2"] {
            let selection = Selection { write: Some(odd.into()), ..Selection::default() };
            let refused = undos.plan(&bench.caller, selection).await;
            assert_eq!(violations(refused), pairs(&[("write", "not_found")]), "{odd}");
        }
    }
}

#[tokio::test]
async fn all_that_match_are_meant_as_long_as_they_are_what_was_seen() {
    for bench in benches().await {
        let home = bench.folder("home", None).await;
        let inner = bench.folder("inner", Some(home.id)).await;
        let a = bench.file("a.md", Some(home.id)).await;
        bench.file("b.md", Some(inner.id)).await;
        bench.file("a.txt", None).await;
        let matching = ItemSelection::Matching;
        let directly = FileMatch { folder: in_folder(Some(home.id), false), ..FileMatch::default() };
        let below = FileMatch { folder: in_folder(Some(home.id), true), ..FileMatch::default() };
        let named = FileMatch { query: "A.".into(), ..FileMatch::default() };
        for (wanted, expected) in [(directly.clone(), 1), (below.clone(), 2), (named, 2)] {
            let batches = Batches::new(bench.context.clone());
            let planned =
                batches.change_items(&bench.caller, matching(wanted), tag(&["t"], &[]), true).await.unwrap();
            assert_eq!((counts(&planned), planned.write), ((expected, expected, 0, expected as u64), None));
        }
        assert!(bench.tags_of(&a).await.is_empty(), "a dry run did something");
        let seen = FileMatch { expected: Some(3), ..below.clone() };
        let refused = bench.change_items(&bench.caller, matching(seen), ItemAction::Trash).await;
        assert_eq!(violations(refused), pairs(&[("files.expectedCount", "changed")]));
        let seen = FileMatch { expected: Some(2), ..below };
        let done = bench.change_items(&bench.caller, matching(seen), ItemAction::Move(None)).await.unwrap();
        assert_eq!(counts(&done), (2, 2, 0, 2), "{}", bench.engine());
        assert_eq!(bench.path_of(&a).await.as_deref(), Some("/a.md"), "{}", bench.engine());
        let refused = bench.change_items(&bench.caller, matching(directly), ItemAction::Restore).await;
        assert_eq!(violations(refused), pairs(&[("files", "invalid")]));
    }
}

#[tokio::test]
async fn a_scope_holds_for_each_of_them() {
    for bench in benches().await {
        let (mine, theirs) = (bench.folder("mine", None).await, bench.folder("theirs", None).await);
        let inner = bench.folder("inner", Some(mine.id)).await;
        let (a, b) = (bench.file("a.md", Some(mine.id)).await, bench.file("b.md", Some(theirs.id)).await);
        let caller = bench.scoped(&[mine.id]);
        let done = bench.change_items(&caller, items(&[&a, &b], &[&mine]), into(&inner)).await.unwrap();
        assert_eq!(counts(&done), (3, 1, 0, 1), "{}: {:?}", bench.engine(), why(&done));
        assert!(done.skipped.iter().all(|one| matches!(one.why, Error::OutOfScope(_))), "{:?}", why(&done));
        for action in [into(&theirs), ItemAction::Move(None)] {
            assert_out_of_scope(bench.change_items(&caller, items(&[&a], &[]), action).await);
        }
        // A filter matches only within the scope.
        let all = ItemSelection::Matching(FileMatch::default());
        let done = bench.change_items(&caller, all, tag(&["t"], &[])).await.unwrap();
        assert_eq!(counts(&done), (1, 1, 0, 1), "{}", bench.engine());
        assert!(bench.tags_of(&b).await.is_empty());
        let done = bench.change_items(&caller, items(&[&a, &b], &[&mine]), ItemAction::Trash).await.unwrap();
        assert_eq!(counts(&done), (3, 1, 0, 1), "{}", bench.engine());
    }
}

#[tokio::test]
async fn records_come_back_beside_files_and_too_many_are_refused() {
    for bench in benches().await {
        let table = Table::new(&bench, None).await;
        let record = table.make(json!({"Name": "one"})).await.record;
        let file = bench.file("a.md", None).await;
        table.records.delete(&bench.caller, &table.id(), &record.id.to_string()).await.unwrap();
        bench.change_items(&bench.caller, items(&[&file], &[]), ItemAction::Trash).await.unwrap();
        let wanted = vec![(Kind::Record, record.id.to_string()), (Kind::File, file.id.to_string())];
        let done = bench
            .change_items(&bench.caller, ItemSelection::Named(wanted), ItemAction::Restore)
            .await
            .unwrap();
        assert_eq!(counts(&done), (2, 2, 0, 2), "{}: {:?}", bench.engine(), why(&done));

        let none =
            bench.change_items(&bench.caller, ItemSelection::Named(Vec::new()), ItemAction::Trash).await;
        assert_eq!(violations(none), pairs(&[("items", "required")]));
        let many = (0..1_001).map(|_| (Kind::File, missing_file())).collect();
        let many = bench.change_items(&bench.caller, ItemSelection::Named(many), ItemAction::Trash).await;
        assert_eq!(violations(many), pairs(&[("items", "too_long")]));
        let drafts = (0..1_000).map(|number| Write::CreateFile(draft(&format!("{number}.md"), None)));
        Batches::new(bench.context.clone()).write(&bench.caller, drafts).await.unwrap();
        let all = ItemSelection::Matching(FileMatch::default());
        let refused = bench.change_items(&bench.caller, all, ItemAction::Trash).await;
        assert_eq!(violations(refused), pairs(&[("files", "too_many")]), "{}", bench.engine());
        let nowhere = ItemAction::Move(Some(missing_folder().to_string()));
        assert_not_found(bench.change_items(&bench.caller, items(&[&file], &[]), nowhere).await, "folder");
    }
}
