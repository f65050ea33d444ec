//! Sizes at which latency is visible to people. The measurements are printed: `cargo test --release -p cairn-content
//! -- --ignored --nocapture`.

use std::time::Instant;

use super::*;
use crate::files::FileDraft;
use crate::model::{Author, Body, Growth, fold};

impl Bench {
    /// Fills a folder with files; only the first is in the feed.
    pub(super) async fn fill_folder(&self, folder: FolderId, count: usize) {
        let body = Body::of("same".into()).await.unwrap();
        let made = self.file("first", Some(folder)).await;
        let mut tx = self.context.db.begin_write().await.unwrap();
        store::bodies::put(&mut tx, self.caller.workspace, &body).await.unwrap();
        for number in 1..count {
            let file = File { id: self.context.ids.next(), name: format!("file {number}"), ..made.clone() };
            store::files::insert(&mut tx, &file, &fold(&file.name), &Author::default()).await.unwrap();
        }
        let growth = Growth { files: count as i64 - 1, ..Growth::default() };
        store::usage::add(&mut tx, self.caller.workspace, growth).await.unwrap();
        tx.commit().await.unwrap();
    }
}

#[tokio::test]
async fn a_folder_of_many_files_goes_whole() {
    const COUNT: usize = 2_500;
    for bench in benches().await {
        let folder = bench.folder("many", None).await;
        bench.fill_folder(folder.id, COUNT).await;
        let page = bench.files.list(&bench.caller, None, first_page()).await.unwrap();
        assert_eq!((page.items.len(), page.total), (1_000, COUNT as u64));
        let position = bench.folders.delete(&bench.caller, &folder.id.to_string()).await.unwrap();
        assert_eq!(position, 2 + COUNT as u64 + 1);
        let first = bench.context.feed.read(bench.caller.workspace, 2, 0).await.unwrap();
        assert_eq!((first.changes.len(), first.head), (1_000, position));
        assert!(first.changes.iter().map(|change| change.position).eq(3..1_003));

        let kind = cairn_chassis::feed::Kind::Folder;
        let back = bench.trash().restore(&bench.caller, kind, &folder.id.to_string()).await.unwrap();
        assert_eq!((back.items, back.position), (COUNT as u64 + 1, position + COUNT as u64 + 1));
        let page = bench.files.list(&bench.caller, None, first_page()).await.unwrap();
        assert_eq!(page.total, COUNT as u64);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement"]
async fn measure() {
    for bench in benches().await {
        let mut parent = None;
        for level in 0..4 {
            parent = Some(bench.folder(&format!("level {level}"), parent).await.id);
        }
        let folder = bench.folder("many", parent).await;
        bench.fill_folder(folder.id, 10_000).await;
        let content = "A line of an ordinary note.\n".repeat(150);
        let file = bench
            .files
            .create(&bench.caller, FileDraft { content, ..draft("note", Some(folder.id)) })
            .await
            .unwrap();
        let id = file.item.id.to_string();
        let report = |what: &str, count: u32, began: Instant| {
            println!("{:9} {what}: {:?}", bench.engine(), began.elapsed() / count);
        };
        if let sql::Engine::Postgres(pool) = bench.context.db.engine() {
            sqlx::raw_sql("ANALYZE").execute(pool).await.unwrap();
        }
        for _ in 0..100 {
            bench.files.get(&bench.caller, &id).await.unwrap();
        }
        let began = Instant::now();
        for _ in 0..2_000 {
            bench.files.get(&bench.caller, &id).await.unwrap();
        }
        report("point read, 4 KiB, 5 levels deep", 2_000, began);
        let began = Instant::now();
        for number in 0..200 {
            bench.files.create(&bench.caller, draft(&format!("n{number}"), Some(folder.id))).await.unwrap();
        }
        report("create", 200, began);
        let began = Instant::now();
        bench.files.list(&bench.caller, in_folder(Some(folder.id), false), first_page()).await.unwrap();
        report("list of 1000 with paths and count", 1, began);
        let began = Instant::now();
        bench.files.list(&bench.caller, in_folder(parent, true), first_page()).await.unwrap();
        report("recursive list of 1000", 1, began);
        let began = Instant::now();
        bench.files.search(&bench.caller, "LE 77", None, 0, Vec::new()).await.unwrap();
        report("name search in 10200", 1, began);
        bench.overview(&bench.caller).await;
        let began = Instant::now();
        for _ in 0..20 {
            bench.overview(&bench.caller).await;
        }
        report("overview of 10200 files", 20, began);
        let began = Instant::now();
        bench.folders.delete(&bench.caller, &folder.id.to_string()).await.unwrap();
        report("delete a folder of 10200 files", 1, began);
        let kind = cairn_chassis::feed::Kind::Folder;
        let folder = folder.id.to_string();
        let began = Instant::now();
        bench.trash().restore(&bench.caller, kind, &folder).await.unwrap();
        report("restore it", 1, began);
        bench.folders.delete(&bench.caller, &folder).await.unwrap();
        let began = Instant::now();
        bench.trash().remove(&bench.caller, kind, &folder).await.unwrap();
        report("remove it for good", 1, began);
    }
}
