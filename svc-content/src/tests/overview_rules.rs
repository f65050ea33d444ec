use cairn_chassis::feed::Kind;
use cairn_chassis::identity::{Principal, PrincipalKind};

use super::*;
use crate::files::FilePatch;
use crate::overview::{MAX_COUNTED_FILES, Overview, Overviews, RecentChange};

impl Bench {
    pub(super) async fn overview(&self, caller: &Caller) -> Overview {
        Overviews::new(self.context.clone()).get(caller).await.unwrap()
    }
}

fn titles(changes: &[RecentChange]) -> Vec<&str> {
    changes.iter().map(|change| change.title.as_str()).collect()
}

fn tops(overview: &Overview) -> Vec<(&str, u64, u64)> {
    let told =
        overview.top_folders.iter().map(|top| (top.folder.name.as_str(), top.below.folders, top.below.files));
    told.collect()
}

#[tokio::test]
async fn an_empty_workspace_has_an_overview() {
    for bench in benches().await {
        let overview = bench.overview(&bench.caller).await;
        assert_eq!((overview.files, overview.folders, overview.top_folder_count), (0, 0, 0));
        assert_eq!((overview.memories.total, overview.databases.total), (0, 0));
        assert_eq!((overview.top_folders, overview.changes), (vec![], vec![]));
    }
}

#[tokio::test]
async fn what_is_live_is_counted_from_the_top() {
    for bench in benches().await {
        let b = bench.folder("b", None).await;
        let a = bench.folder("a", None).await;
        let deep = bench.folder("deep", Some(a.id)).await;
        let gone = bench.folder("gone", Some(a.id)).await;
        bench.file("root.md", None).await;
        bench.file("a1.md", Some(a.id)).await;
        bench.file("a2.md", Some(deep.id)).await;
        bench.file("lost.md", Some(gone.id)).await;
        let trashed = bench.file("trashed.md", Some(b.id)).await;
        bench.folders.delete(&bench.caller, &gone.id.to_string()).await.unwrap();
        bench.files.delete(&bench.caller, &trashed.id.to_string()).await.unwrap();

        let overview = bench.overview(&bench.caller).await;
        assert_eq!((overview.files, overview.folders), (3, 3), "{}", bench.engine());
        assert_eq!(tops(&overview), [("a", 1, 2), ("b", 0, 0)]);
        assert_eq!(overview.top_folder_count, 2);
        assert_eq!(titles(&overview.changes), ["a2.md", "a1.md", "root.md"]);
        let counts = Overviews::new(bench.context.clone()).counts(&bench.caller).await.unwrap();
        assert_eq!((counts.files, counts.folders), (3, 3), "{}", bench.engine());
        assert!(counts.top_folders.is_empty() && counts.changes.is_empty());
    }
}

#[tokio::test]
async fn a_scope_sees_its_own_only() {
    for bench in benches().await {
        let a = bench.folder("a", None).await;
        let deep = bench.folder("deep", Some(a.id)).await;
        let b = bench.folder("b", None).await;
        bench.file("deep.md", Some(deep.id)).await;
        bench.file("a.md", Some(a.id)).await;
        bench.file("b.md", Some(b.id)).await;
        bench.file("root.md", None).await;

        let overview = bench.overview(&bench.scoped(&[a.id])).await;
        assert_eq!((overview.files, overview.folders), (2, 2));
        assert_eq!(tops(&overview), [("a", 1, 2)]);
        assert_eq!(titles(&overview.changes), ["a.md", "deep.md"]);
        let overview = bench.overview(&bench.scoped(&[deep.id, b.id])).await;
        assert_eq!(tops(&overview), [("b", 0, 1), ("deep", 0, 1)]);
        let nothing = bench.overview(&bench.scoped(&[])).await;
        assert_eq!((nothing.files, nothing.folders, nothing.changes), (0, 0, vec![]));
        let other = bench.overview(&caller(2)).await;
        assert_eq!((other.files, other.changes), (0, vec![]));
    }
}

#[tokio::test]
async fn changes_come_once_with_who_wrote_last() {
    for bench in benches().await {
        let person = |name: &str| Caller {
            principal: Principal {
                kind: PrincipalKind::User,
                id: format!("id of {name}"),
                name: name.to_owned(),
            },
            ..bench.caller.clone()
        };
        let (ada, bob) = (person("Ada"), person("Bob"));
        let one = bench.files.create(&ada, draft("one.md", None)).await.unwrap().item;
        bench.files.create(&ada, draft("two.md", None)).await.unwrap();
        let patch = FilePatch { content: Some("second".to_owned()), ..FilePatch::default() };
        let written = bench.files.update(&bob, &one.id.to_string(), patch).await.unwrap().item;
        for number in 0..12 {
            bench.folder(&format!("f{number}"), None).await;
        }

        let changes = bench.overview(&bench.caller).await.changes;
        assert_eq!(titles(&changes), ["one.md", "two.md"], "a folder is no news by itself");
        let names: Vec<String> = changes.iter().map(|change| change.author.clone().unwrap().name).collect();
        assert_eq!(names, ["Bob", "Ada"]);
        assert_eq!((changes[0].kind, changes[0].version), (Kind::File, 2));
        assert_eq!((changes[0].changed_at, changes[0].path.as_str()), (written.updated_at, "/one.md"));
    }
}

#[tokio::test]
async fn lists_and_counting_end_somewhere() {
    for bench in benches().await {
        for number in 0..35 {
            bench.folder(&format!("f{number:02}"), None).await;
        }
        let overview = bench.overview(&bench.caller).await;
        assert_eq!((overview.top_folders.len(), overview.top_folder_count), (30, 35));
        let folder = overview.top_folders[0].folder.id;
        bench.fill_folder(folder, 120).await;
        let overview = bench.overview(&bench.caller).await;
        assert_eq!((overview.files, tops(&overview)[0]), (120, ("f00", 0, MAX_COUNTED_FILES)));
        // The feed has an entry for one of them only.
        assert_eq!(titles(&overview.changes), ["first"]);
    }
}
