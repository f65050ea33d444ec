//! How the in-memory names are built, follow the feed, and stay within their budget.

use std::time::Duration;

use super::*;
use crate::columns::Names;
use crate::files::FilePatch;

/// More than a request builds inline.
const MANY: usize = 1_500;
const WRITERS: usize = 6;
const WRITES: usize = 12;
const READY_LIMIT: Duration = Duration::from_secs(60);

fn with(bench: &Bench, bytes: usize) -> (Files, SnapshotCache<Names>) {
    let names = SnapshotCache::new(bytes);
    (Files::new(Context { names: names.clone(), ..bench.context.clone() }), names)
}

async fn found(files: &Files, caller: &Caller, part: &str) -> (Vec<String>, u64) {
    let (files, total) = files.search(caller, part, None, 5, Vec::new()).await.unwrap();
    (files.into_iter().map(|file| file.path).collect(), total)
}

#[tokio::test(flavor = "multi_thread")]
async fn everybody_finds_what_was_written_through_any_process() {
    for bench in benches().await {
        let processes: Vec<(Files, SnapshotCache<Names>)> =
            (0..3).map(|_| with(&bench, NAMES_BYTES)).collect();
        let caller = &bench.caller;
        let write = async |writer: usize| {
            for number in 0..WRITES {
                let (mine, other) = (&processes[writer % 3].0, &processes[(writer + 1) % 3].0);
                let (name, later) = (format!("w{writer}n{number}x"), format!("w{writer}n{number}y"));
                let id = mine.create(caller, draft(&name, None)).await.unwrap().item.id.to_string();
                for files in [mine, other] {
                    assert_eq!(found(files, caller, &name).await, (vec![format!("/{name}")], 1));
                }
                let patch = FilePatch { name: Some(later.clone()), ..FilePatch::default() };
                other.update(caller, &id, patch).await.unwrap();
                for files in [mine, other] {
                    assert_eq!(found(files, caller, &name).await.1, 0, "{} {name}", bench.engine());
                    assert_eq!(found(files, caller, &later).await.1, 1, "{} {later}", bench.engine());
                }
                mine.delete(caller, &id).await.unwrap();
                for files in [mine, other] {
                    assert_eq!(
                        found(files, caller, &later).await.1,
                        0,
                        "{} {later} is in trash",
                        bench.engine()
                    );
                }
            }
        };
        futures::future::join_all((0..WRITERS).map(write)).await;
        for (_, cache) in &processes {
            assert_eq!(cache.len(), 1);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_names_are_read_behind_the_requests() {
    for bench in benches().await {
        let folder = bench.folder("many", None).await;
        bench.fill_folder(folder.id, MANY).await;
        let (files, cache) = with(&bench, NAMES_BYTES);
        let (engine, _) = with(&bench, 0);
        let began = tokio::time::Instant::now();
        let mut number = 0;
        // Written during the build, and after it.
        while cache.len() == 0 || number < 4 {
            assert!(began.elapsed() < READY_LIMIT, "the names are never read");
            bench.file(&format!("late {number}"), None).await;
            number += 1;
            for part in ["file 14", "LATE", "e", "nowhere"] {
                let expected = found(&engine, &bench.caller, part).await;
                assert_eq!(found(&files, &bench.caller, part).await, expected, "{} {part}", bench.engine());
            }
        }
        assert_eq!(found(&files, &bench.caller, "late").await.1, number);

        bench.folders.delete(&bench.caller, &folder.id.to_string()).await.unwrap();
        assert_eq!(found(&files, &bench.caller, "file 1").await.1, 0, "{}", bench.engine());
        let kind = cairn_chassis::feed::Kind::Folder;
        bench.trash().restore(&bench.caller, kind, &folder.id.to_string()).await.unwrap();
        let expected = found(&engine, &bench.caller, "file 1").await;
        assert_eq!(found(&files, &bench.caller, "file 1").await, expected);
        assert!(expected.1 > 500, "{expected:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_are_too_many_are_left_to_the_engine() {
    for bench in benches().await {
        let folder = bench.folder("many", None).await;
        bench.fill_folder(folder.id, MANY).await;
        let (files, cache) = with(&bench, 4_096);
        for _ in 0..20 {
            // 14, 140 to 149 and 1400 to 1499.
            assert_eq!(found(&files, &bench.caller, "file 14").await.1, 111, "{}", bench.engine());
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        assert_eq!(cache.len(), 0);
    }
}

#[tokio::test]
async fn another_workspace_finds_none_of_them() {
    for bench in benches().await {
        bench.file("narwhal.md", None).await;
        for _ in 0..3 {
            assert_eq!(found(&bench.files, &bench.caller, "narwhal").await.1, 1);
            assert_eq!(found(&bench.files, &caller(2), "narwhal").await.1, 0);
        }
        assert_eq!(bench.context.names.len(), 2);
        bench.context.names.sweep(cairn_chassis::clock::Timestamp::from_micros(i64::MAX));
        assert_eq!(bench.context.names.len(), 0, "nobody looks for them any more");
        assert_eq!(found(&bench.files, &bench.caller, "narwhal").await.1, 1);
    }
}
