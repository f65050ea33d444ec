use tokio::task::JoinSet;

use super::*;
use crate::files::FilePatch;

/// Two moves that together would make a cycle: in every interleaving, one of them is rejected.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_moves_never_close_a_circle_together() {
    for bench in benches().await {
        for round in 0..20 {
            let a = bench.folder(&format!("a{round}"), None).await.id;
            let b = bench.folder(&format!("b{round}"), None).await.id;
            let mut moves = JoinSet::new();
            for (from, to) in [(a, b), (b, a)] {
                let (folders, caller) = (bench.folders.clone(), bench.caller.clone());
                moves.spawn(
                    async move { folders.update(&caller, &from.to_string(), move_to(Some(to))).await },
                );
            }
            let results = moves.join_all().await;
            let won = results.iter().filter(|result| result.is_ok()).count();
            assert_eq!(won, 1, "{} {results:?}", bench.engine());
            // Both still have a path to the root.
            for id in [a, b] {
                bench.folders.get(&bench.caller, &id.to_string()).await.unwrap();
            }
        }
    }
}

/// Files are created in and moved into a tree while it is deleted: none may stay live in a deleted folder.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_survives_in_a_deleted_folder() {
    for bench in benches().await {
        for round in 0..8 {
            let top = bench.folder(&format!("top{round}"), None).await.id;
            let inner = bench.folder("inner", Some(top)).await.id;
            let mut tasks = JoinSet::new();
            for number in 0..4 {
                let existing =
                    bench.file(&format!("old{number}"), (number % 2 == 0).then_some(inner)).await.id;
                let (files, folders, caller) =
                    (bench.files.clone(), bench.folders.clone(), bench.caller.clone());
                tasks.spawn(async move {
                    let _ = files.create(&caller, draft("new", Some(inner))).await;
                    let into = FilePatch { folder_id: Some(Some(top.to_string())), ..FilePatch::default() };
                    let _ = files.update(&caller, &existing.to_string(), into).await;
                    let _ = folders.create(&caller, folder_draft("sub", Some(inner))).await;
                });
            }
            let (folders, caller) = (bench.folders.clone(), bench.caller.clone());
            tasks.spawn(async move {
                folders.delete(&caller, &top.to_string()).await.unwrap();
            });
            tasks.join_all().await;
        }
        // A live file in a deleted folder fails the list; a live folder in one is missing from it.
        let files = bench.files.list(&bench.caller, None, first_page()).await.unwrap();
        assert!(files.items.iter().all(|file| file.folders.is_empty()), "{}", bench.engine());
        assert!(bench.folder_paths(&bench.caller, None).await.is_empty(), "{}", bench.engine());
        let live =
            store::folders::count(&bench.context.db, bench.caller.workspace, &store::page::ListScope::All)
                .await;
        assert_eq!(live.unwrap(), 0, "{}", bench.engine());
    }
}

/// Concurrent writers with the same hash precondition: each content is replaced once.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_writers_with_the_same_hash_one_wins() {
    for bench in benches().await {
        let file = bench.file("a.md", None).await;
        let mut tasks = JoinSet::new();
        for number in 0..8 {
            let (files, caller) = (bench.files.clone(), bench.caller.clone());
            let (id, hash) = (file.id.to_string(), file.content_hash.clone());
            tasks.spawn(async move {
                let patch = FilePatch {
                    content: Some(format!("version of {number}")),
                    if_content_hash: vec![hash],
                    ..FilePatch::default()
                };
                files.update(&caller, &id, patch).await
            });
        }
        let results = tasks.join_all().await;
        assert_eq!(
            results.iter().filter(|result| result.is_ok()).count(),
            1,
            "{} {results:?}",
            bench.engine()
        );
        let conflicts = results.iter().filter(|result| matches!(result, Err(Error::VersionConflict { .. })));
        assert_eq!(conflicts.count(), 7);
        assert_eq!(bench.files.get(&bench.caller, &file.id.to_string()).await.unwrap().0.version, 2);
    }
}
