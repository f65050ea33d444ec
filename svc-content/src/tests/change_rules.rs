//! The feed as callers see it.

use cairn_chassis::feed::changes::{TimedChange, VisibleChange};
use cairn_chassis::feed::{Kind, Op};

use super::activity_rules::token;
use super::*;
use crate::changes::Changes;

impl Bench {
    async fn seen_by(&self, caller: &Caller, after: u64) -> Vec<VisibleChange> {
        let page = self.context.feed.read(caller.workspace, after, 0).await.unwrap();
        let mut dated = Vec::new();
        for change in page.changes {
            let at = self.context.feed.time_of(caller.workspace, change.position).await.unwrap().unwrap();
            dated.push(TimedChange { change, at });
        }
        Changes::new(self.context.clone()).seen(caller, dated).await.unwrap()
    }

    async fn head(&self) -> u64 {
        self.context.feed.head(self.caller.workspace).await.unwrap()
    }
}

fn told(seen: &[VisibleChange]) -> Vec<(Op, String)> {
    seen.iter().map(|one| (one.op, one.item_id.clone())).collect()
}

#[tokio::test]
async fn a_change_names_its_writer_and_version() {
    for bench in benches().await {
        let writer = token(&bench, "writer");
        let file = bench.files.create(&writer, draft("a.md", None)).await.unwrap().item;
        let edit = files::FilePatch { content: Some("other".into()), ..Default::default() };
        bench.files.update(&bench.caller, &file.id.to_string(), edit).await.unwrap();
        bench.files.delete(&writer, &file.id.to_string()).await.unwrap();
        let seen = bench.seen_by(&bench.caller, 0).await;
        let writers: Vec<_> = seen.iter().map(|one| one.author.as_ref().unwrap().name.as_str()).collect();
        assert_eq!(writers, ["writer", "", "writer"], "{}", bench.engine());
        assert_eq!(seen.iter().map(|one| one.version).collect::<Vec<_>>(), [Some(1), Some(2), None]);
    }
}

#[tokio::test]
async fn a_deletion_tells_all_that_went_and_one_writer() {
    for bench in benches().await {
        let (folder, other) = (bench.folder("f", None).await, bench.folder("g", None).await);
        bench.file("a.md", Some(folder.id)).await;
        let (before, writer) = (bench.head().await, token(&bench, "writer"));
        bench.folders.delete(&writer, &folder.id.to_string()).await.unwrap();
        let seen = bench.seen_by(&bench.caller, before).await;
        assert_eq!(seen.len(), 2, "{}", bench.engine());
        assert!(seen.iter().all(|one| one.op == Op::Delete && one.author.as_ref().unwrap().name == "writer"));
        // A token of the folders sees all of them.
        assert_eq!(bench.seen_by(&bench.scoped(&[folder.id]), before).await.len(), 2);
        assert_eq!(bench.seen_by(&bench.scoped(&[other.id]), before).await.len(), 0);
    }
}

#[tokio::test]
async fn what_left_a_scope_is_told_once_and_never_where_to() {
    for bench in benches().await {
        let (inside, outside) = (bench.folder("in", None).await, bench.folder("out", None).await);
        let scoped = bench.scoped(&[inside.id]);
        let (mine, other) =
            (bench.file("a.md", Some(inside.id)).await, bench.file("b.md", Some(outside.id)).await);
        let before = bench.head().await;
        let into = |folder: FolderId| files::FilePatch {
            folder_id: Some(Some(folder.to_string())),
            ..Default::default()
        };
        bench.files.update(&bench.caller, &mine.id.to_string(), into(outside.id)).await.unwrap();
        let edit = files::FilePatch { content: Some("x".into()), ..Default::default() };
        bench.files.update(&bench.caller, &mine.id.to_string(), edit).await.unwrap();
        bench.files.update(&bench.caller, &other.id.to_string(), into(inside.id)).await.unwrap();
        let seen = bench.seen_by(&scoped, before).await;
        let expected = [(Op::Delete, mine.id.to_string()), (Op::Upsert, other.id.to_string())];
        assert_eq!(told(&seen), expected, "{}", bench.engine());
        assert_eq!((seen[0].author.as_ref(), seen[0].version, seen[0].kind), (None, None, Kind::File));
        assert_eq!(bench.seen_by(&bench.caller, before).await.len(), 3);
    }
}
