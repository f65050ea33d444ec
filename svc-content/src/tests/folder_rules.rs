use cairn_chassis::feed::{Entry, Kind, Op};
use cairn_chassis::on_db;

use super::*;
use crate::folders::FolderPatch;

fn rename(name: &str) -> FolderPatch {
    FolderPatch { name: Some(name.into()), ..FolderPatch::default() }
}

#[tokio::test]
async fn a_tree_has_paths() {
    for bench in benches().await {
        let a = bench.folder("a", None).await;
        let b = bench.folder("b", Some(a.id)).await;
        let c = bench.folder("c", Some(b.id)).await;
        assert_eq!((c.path.as_str(), c.parent_id()), ("/a/b/c", Some(b.id)));
        assert_eq!(
            bench.folders.get(&bench.caller, &c.id.to_string()).await.unwrap(),
            c,
            "{}",
            bench.engine()
        );
        assert_eq!(bench.folder_paths(&bench.caller, None).await, ["/a", "/a/b", "/a/b/c"]);
        assert_eq!(bench.folder_paths(&bench.caller, Some(None)).await, ["/a"]);
        assert_eq!(bench.folder_paths(&bench.caller, Some(Some(a.id))).await, ["/a/b"]);

        let moved =
            bench.folders.update(&bench.caller, &c.id.to_string(), move_to(Some(a.id))).await.unwrap();
        assert_eq!((moved.item.path.as_str(), moved.position), ("/a/c", 4));
        let renamed = bench.folders.update(&bench.caller, &a.id.to_string(), rename("A")).await.unwrap();
        assert_eq!(renamed.item.path, "/A");
        assert_eq!(bench.entries_after(4).await, [Entry::upsert(Kind::Folder, a.id)]);
        assert_eq!(bench.folders.get(&bench.caller, &c.id.to_string()).await.unwrap().path, "/A/c");
        let same = bench.folders.update(&bench.caller, &a.id.to_string(), rename("A")).await.unwrap();
        assert_eq!((same.item, same.position), (renamed.item, 5));
    }
}

#[tokio::test]
async fn circles_are_refused() {
    for bench in benches().await {
        let a = bench.folder("a", None).await;
        let b = bench.folder("b", Some(a.id)).await;
        let c = bench.folder("c", Some(b.id)).await;
        for target in [a.id, b.id, c.id] {
            let found = violations(
                bench.folders.update(&bench.caller, &a.id.to_string(), move_to(Some(target))).await,
            );
            assert_eq!(found, pairs(&[("parentId", "cycle")]), "{}", bench.engine());
        }
        bench.folders.update(&bench.caller, &c.id.to_string(), move_to(None)).await.unwrap();
        bench.folders.update(&bench.caller, &a.id.to_string(), move_to(Some(c.id))).await.unwrap();
    }
}

#[tokio::test]
async fn a_tree_has_a_hundred_levels() {
    for bench in benches().await {
        let mut chain = vec![bench.folder("0", None).await.id];
        for level in 1..100 {
            chain.push(bench.folder(&level.to_string(), chain.last().copied()).await.id);
        }
        let deepest = chain[99];
        let too_deep = bench.folders.create(&bench.caller, folder_draft("x", Some(deepest))).await;
        assert_eq!(violations(too_deep), pairs(&[("parentId", "out_of_range")]));
        let file = bench.file("leaf", Some(deepest)).await;
        assert_eq!(file.path.matches('/').count(), 101);
        assert_eq!(
            bench.files.get(&bench.caller, &file.id.to_string()).await.unwrap().0,
            file,
            "{}",
            bench.engine()
        );

        let pair = bench.folder("pair", None).await;
        bench.folder("leaf", Some(pair.id)).await;
        let id = pair.id.to_string();
        let refused = bench.folders.update(&bench.caller, &id, move_to(Some(chain[98]))).await;
        assert_eq!(violations(refused), pairs(&[("parentId", "out_of_range")]));
        bench.folders.update(&bench.caller, &id, move_to(Some(chain[97]))).await.unwrap();
    }
}

#[tokio::test]
async fn what_is_not_there_is_named() {
    for bench in benches().await {
        let missing = missing_folder().to_string();
        assert_not_found(bench.folders.get(&bench.caller, &missing).await, "folder");
        assert_not_found(bench.folders.get(&bench.caller, "x").await, "folder");
        assert_not_found(bench.folders.delete(&bench.caller, &missing).await, "folder");
        assert_not_found(bench.folders.update(&bench.caller, &missing, rename("x")).await, "folder");
        let create = bench.folders.create(&bench.caller, folder_draft("x", Some(missing_folder()))).await;
        assert_not_found(create, "folder");
        let folder = bench.folder("f", None).await;
        let stranger = caller(2);
        let id = folder.id.to_string();
        assert_not_found(bench.folders.get(&stranger, &id).await, "folder");
        assert_not_found(bench.folders.delete(&stranger, &id).await, "folder");
        assert_not_found(bench.folders.update(&stranger, &id, rename("x")).await, "folder");
        assert_not_found(bench.folders.create(&stranger, folder_draft("x", Some(folder.id))).await, "folder");
        let bad = folders::FolderDraft { name: "..".into(), parent_id: Some("x".into()) };
        let found = violations(bench.folders.create(&bench.caller, bad).await);
        assert_eq!(found, pairs(&[("name", "invalid"), ("parentId", "invalid")]));
    }
}

#[tokio::test]
async fn a_deletion_takes_the_whole_tree_under_one_id() {
    for bench in benches().await {
        let a = bench.folder("a", None).await;
        let b = bench.folder("b", Some(a.id)).await;
        let keep = bench.folder("keep", None).await;
        let one = bench.file("1", Some(a.id)).await;
        let two = bench.file("2", Some(b.id)).await;
        let earlier = bench.file("earlier", Some(b.id)).await;
        let kept = bench.file("kept", Some(keep.id)).await;
        bench.files.delete(&bench.caller, &earlier.id.to_string()).await.unwrap();
        let before = bench.changes().await.len() as u64;

        let position = bench.folders.delete(&bench.caller, &a.id.to_string()).await.unwrap();
        assert_eq!(position, before + 4);
        let mut expected = vec![
            (Kind::Folder, a.id.to_string()),
            (Kind::Folder, b.id.to_string()),
            (Kind::File, one.id.to_string()),
            (Kind::File, two.id.to_string()),
        ];
        let entries = bench.entries_after(before).await;
        assert!(entries.iter().all(|entry| entry.op == Op::Delete));
        let mut told: Vec<_> = entries.into_iter().map(|entry| (entry.kind, entry.item_id)).collect();
        told.sort();
        expected.sort();
        assert_eq!(told, expected, "{}", bench.engine());

        assert_eq!(bench.names(&bench.caller, None).await, ["kept"]);
        assert_eq!(bench.folder_paths(&bench.caller, None).await, ["/keep"]);
        assert_not_found(bench.files.get(&bench.caller, &two.id.to_string()).await, "file");
        assert_not_found(bench.folders.get(&bench.caller, &b.id.to_string()).await, "folder");
        assert_not_found(bench.folders.delete(&bench.caller, &b.id.to_string()).await, "folder");
        assert_not_found(bench.files.create(&bench.caller, draft("x", Some(b.id))).await, "folder");
        assert_not_found(bench.folders.create(&bench.caller, folder_draft("x", Some(b.id))).await, "folder");
        let into_trash = bench.folders.update(&bench.caller, &keep.id.to_string(), move_to(Some(a.id))).await;
        assert_not_found(into_trash, "folder");
        assert_eq!(kept.path, "/keep/kept");

        const DELETIONS: &str = "SELECT COUNT(*) FROM files WHERE workspace_id = $1 \
             AND deletion_id = (SELECT deletion_id FROM folders WHERE workspace_id = $1 AND id = $2)";
        let with_the_folder: i64 = on_db!(bench.context.db, |c| sqlx::query_scalar(DELETIONS)
            .bind(bench.caller.workspace.to_string())
            .bind(a.id.to_string())
            .fetch_one(c)
            .await)
        .unwrap();
        assert_eq!(with_the_folder, 2, "what was in trash before is not part of this deletion");
    }
}

#[tokio::test]
async fn a_scoped_caller_keeps_to_its_folders() {
    for bench in benches().await {
        let above = bench.folder("above", None).await;
        let own = bench.folder("own", Some(above.id)).await;
        let inner = bench.folder("inner", Some(own.id)).await;
        let other = bench.folder("other", None).await;
        let agent = bench.scoped(&[own.id]);
        let id = |folder: &Folder| folder.id.to_string();

        assert_eq!(bench.folders.get(&agent, &id(&own)).await.unwrap().path, "/above/own");
        assert_out_of_scope(bench.folders.get(&agent, &id(&above)).await);
        assert_out_of_scope(bench.folders.get(&agent, &id(&other)).await);
        assert_eq!(
            bench.folder_paths(&agent, None).await,
            ["/above/own/inner", "/above/own"],
            "{}",
            bench.engine()
        );
        assert_eq!(bench.folder_paths(&agent, Some(None)).await, Vec::<String>::new());
        assert_eq!(bench.folder_paths(&agent, Some(Some(own.id))).await, ["/above/own/inner"]);
        let list = bench.folders.list(&agent, Some(Some(id(&other))), first_page()).await;
        assert_out_of_scope(list);
        let of_roots = bench.scoped(&[other.id, above.id, inner.id]);
        assert_eq!(bench.folder_paths(&of_roots, Some(None)).await, ["/above", "/other"]);

        // A token may not change the folders that it is bound to.
        assert_out_of_scope(bench.folders.update(&agent, &id(&own), rename("x")).await);
        assert_out_of_scope(bench.folders.update(&agent, &id(&own), move_to(None)).await);
        assert_out_of_scope(bench.folders.delete(&agent, &id(&own)).await);
        assert_out_of_scope(bench.folders.delete(&agent, &id(&other)).await);
        assert_out_of_scope(bench.folders.update(&agent, &id(&inner), move_to(None)).await);
        assert_out_of_scope(bench.folders.update(&agent, &id(&inner), move_to(Some(other.id))).await);
        assert_out_of_scope(bench.folders.create(&agent, folder_draft("x", None)).await);
        assert_out_of_scope(bench.folders.create(&agent, folder_draft("x", Some(above.id))).await);
        let made = bench.folders.create(&agent, folder_draft("x", Some(own.id))).await.unwrap().item;
        bench.folders.update(&agent, &id(&inner), move_to(Some(made.id))).await.unwrap();

        let covered = bench.folders.resolve_scope(&agent).await.unwrap().unwrap();
        let mut expected = vec![own.id, inner.id, made.id];
        expected.sort_by_key(ToString::to_string);
        assert_eq!(covered, expected);
        assert_eq!(bench.folders.resolve_scope(&bench.caller).await.unwrap(), None);
        bench.folders.delete(&agent, &id(&made)).await.unwrap();
        assert_eq!(bench.folders.resolve_scope(&agent).await.unwrap().unwrap(), [own.id]);
        bench.folders.delete(&bench.caller, &id(&own)).await.unwrap();
        assert_eq!(bench.folders.resolve_scope(&agent).await.unwrap().unwrap(), []);
    }
}
