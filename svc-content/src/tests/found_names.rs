//! Folders, databases and memories by a part of their names.

use cairn_chassis::feed::Kind;

use super::*;
use crate::databases::{DatabaseDraft, DatabasePatch, Databases};
use crate::folders::FolderPatch;
use crate::model::Database;
use crate::names::Finder;

/// More than one page of a list of folders.
const MANY: usize = 1_005;

impl Bench {
    async fn named(&self, caller: &Caller, query: &str, limit: u32) -> Vec<(Kind, String)> {
        let found = Finder::new(self.context.clone()).find(caller, query, limit).await.unwrap();
        assert!(!found.is_part);
        found.items.into_iter().map(|item| (item.kind, item.path.unwrap_or(item.name))).collect()
    }

    async fn database_in(&self, name: &str, folder: Option<FolderId>) -> Database {
        let draft = DatabaseDraft {
            name: name.to_owned(),
            folder_id: folder.map(|id| id.to_string()),
            description: None,
            icon: None,
            new_id: None,
        };
        Databases::new(self.context.clone()).create(&self.caller, draft).await.unwrap().item
    }
}

fn of<const N: usize>(expected: [(Kind, &str); N]) -> Vec<(Kind, String)> {
    expected.into_iter().map(|(kind, name)| (kind, name.to_owned())).collect()
}

#[tokio::test]
async fn each_kind_is_found_the_best_names_first() {
    for bench in benches().await {
        let outer = bench.folder("My plans", None).await;
        bench.folder("PLAN", Some(outer.id)).await;
        bench.folder("planes", None).await;
        bench.folder("other", None).await;
        bench.database_in("Plan of 100%_done", None).await;
        bench.memory("A plan", Vec::new()).await;
        bench.memory("Straße", Vec::new()).await;
        bench.file("plan.md", None).await;

        let caller = &bench.caller;
        let all = [
            (Kind::Folder, "/My plans/PLAN"),
            (Kind::Folder, "/planes"),
            (Kind::Folder, "/My plans"),
            (Kind::Database, "Plan of 100%_done"),
            (Kind::Memory, "A plan"),
        ];
        assert_eq!(bench.named(caller, "pLaN", 0).await, of(all), "{}", bench.engine());
        let first = [all[0], all[3], all[4]];
        assert_eq!(bench.named(caller, "plan", 1).await, of(first), "of each kind");
        assert_eq!(bench.named(caller, "0%_d", 0).await, of([all[3]]), "no wildcards");
        assert_eq!(bench.named(caller, "STRASS", 0).await, of([(Kind::Memory, "Straße")]));
        assert_eq!(bench.named(caller, "a-plan", 0).await, of([all[4]]), "by its slug");
        assert_eq!(bench.named(caller, "plan.md", 0).await, []);
        assert_eq!(bench.named(&super::caller(2), "plan", 0).await, [], "of another workspace");
        let finder = Finder::new(bench.context.clone());
        for (query, code) in [("", "required"), (" ", "required"), ("a\0", "invalid")] {
            assert_eq!(violations(finder.find(caller, query, 0).await), pairs(&[("query", code)]));
        }
    }
}

#[tokio::test]
async fn what_was_written_is_found_and_what_is_in_trash_is_not() {
    for bench in benches().await {
        let caller = &bench.caller;
        let databases = Databases::new(bench.context.clone());
        let folder = bench.folder("walrus", None).await;
        let inner = bench.folder("walrus inside", Some(folder.id)).await;
        let database = bench.database_in("walrus", Some(inner.id)).await;
        let memory = bench.memory("walrus", Vec::new()).await;
        assert_eq!(bench.named(caller, "walrus", 0).await.len(), 4, "{}", bench.engine());

        let renamed = FolderPatch { name: Some("narwhal".to_owned()), ..FolderPatch::default() };
        bench.folders.update(caller, &folder.id.to_string(), renamed).await.unwrap();
        let renamed = DatabasePatch { name: Some("narwhal".to_owned()), ..DatabasePatch::default() };
        databases.update(caller, &database.id.to_string(), renamed).await.unwrap();
        bench.memories().delete(caller, &memory.id.to_string()).await.unwrap();
        assert_eq!(bench.named(caller, "walrus", 0).await, of([(Kind::Folder, "/narwhal/walrus inside")]));
        let both = [(Kind::Folder, "/narwhal"), (Kind::Database, "narwhal")];
        assert_eq!(bench.named(caller, "narwhal", 0).await, of(both));

        bench.folders.delete(caller, &folder.id.to_string()).await.unwrap();
        assert_eq!(bench.named(caller, "a", 0).await, [], "{}", bench.engine());
        bench.trash().restore(caller, Kind::Folder, &folder.id.to_string()).await.unwrap();
        bench.trash().restore(caller, Kind::Memory, &memory.id.to_string()).await.unwrap();
        assert_eq!(bench.named(caller, "a", 0).await.len(), 4, "{}", bench.engine());
    }
}

#[tokio::test]
async fn a_scope_holds_its_own_folders_and_databases() {
    for bench in benches().await {
        let mine = bench.folder("plan mine", None).await;
        bench.folder("plan inside", Some(mine.id)).await;
        let others = bench.folder("plan others", None).await;
        bench.database_in("plan mine", Some(mine.id)).await;
        bench.database_in("plan others", Some(others.id)).await;
        bench.database_in("plan root", None).await;
        bench.memory("plan", Vec::new()).await;
        let expected = [
            (Kind::Folder, "/plan mine/plan inside"),
            (Kind::Folder, "/plan mine"),
            (Kind::Database, "plan mine"),
            (Kind::Memory, "plan"),
        ];
        assert_eq!(
            bench.named(&bench.scoped(&[mine.id]), "plan", 0).await,
            of(expected),
            "{}",
            bench.engine()
        );
        assert_eq!(bench.named(&bench.scoped(&[]), "plan", 0).await, of([(Kind::Memory, "plan")]));
    }
}

#[tokio::test]
async fn what_stands_behind_many_others_is_found() {
    for bench in benches().await {
        for number in 0..MANY {
            bench.folder(&format!("f{number:04}"), None).await;
        }
        bench.folder("zebra", None).await;
        assert_eq!(bench.named(&bench.caller, "zebra", 0).await, of([(Kind::Folder, "/zebra")]));
        assert_eq!(bench.named(&bench.caller, "f", 0).await.len(), 20);
        assert_eq!(bench.named(&bench.caller, "f", 1_000).await.len(), 100);
    }
}
