//! Memories in trash.

use std::time::Duration;

use cairn_chassis::clock::ManualClock;
use cairn_chassis::feed::Kind;

use super::memory_rules::of_file;
use super::*;
use crate::trash::Trash;

#[tokio::test]
async fn a_memory_comes_back_with_its_members() {
    for bench in benches().await {
        let file = bench.file("a.md", None).await;
        let memory = bench.memory("Release", vec![of_file(file.id)]).await;
        let id = memory.id.to_string();
        let before = bench.context.feed.read(bench.caller.workspace, 0, 0).await.unwrap().head;
        bench.memories().delete(&bench.caller, "release").await.unwrap();
        for named in ["release", &id] {
            assert_not_found(bench.memories().resolve(&bench.caller, named).await, "memory");
            assert_not_found(bench.memories().delete(&bench.caller, named).await, "memory");
        }
        assert!(bench.memories().list(&bench.caller, first_page()).await.unwrap().items.is_empty());
        let deletion = bench.in_trash().await.remove(0).deletion;
        assert_eq!((deletion.kind, deletion.path.as_str()), (Kind::Memory, "/memories/release"));
        assert_eq!((deletion.name.as_str(), deletion.items), ("Release", 1));

        let other = bench.memory("Release", vec![]).await;
        assert_eq!(other.slug, "release", "{}: a slug in trash is free", bench.engine());
        let back = bench.trash().restore(&bench.caller, Kind::Memory, &id).await.unwrap();
        assert_eq!((back.path.as_str(), back.items), ("/memories/release-2", 1));
        let read = bench.resolved(&bench.caller, &memory).await.memory;
        assert_eq!((read.slug.as_str(), read.members.len()), ("release-2", 1));
        let told = [
            Entry::delete(Kind::Memory, memory.id),
            Entry::upsert(Kind::Memory, other.id),
            Entry::upsert(Kind::Memory, memory.id),
        ];
        assert_eq!(bench.entries_after(before).await, told);
        assert_eq!(bench.wrong().await, [], "{}", bench.engine());
    }
}

#[tokio::test]
async fn a_scope_that_could_delete_a_memory_brings_it_back() {
    for bench in benches().await {
        let (mine, other) = (bench.folder("mine", None).await, bench.folder("other", None).await);
        let (inside, outside) =
            (bench.file("in", Some(mine.id)).await, bench.file("out", Some(other.id)).await);
        let scoped = bench.scoped(&[mine.id]);
        let own = bench.memory("own", vec![of_file(inside.id)]).await.id.to_string();
        let shared = bench.memory("shared", vec![of_file(outside.id)]).await.id.to_string();
        bench.memories().delete(&scoped, &own).await.unwrap();
        bench.memories().delete(&bench.caller, &shared).await.unwrap();
        let trash = bench.trash();
        trash.restore(&scoped, Kind::Memory, &own).await.unwrap();
        assert_out_of_scope(trash.restore(&scoped, Kind::Memory, &shared).await);
        assert_out_of_scope(trash.remove(&scoped, Kind::Memory, &shared).await);
        bench.memories().delete(&scoped, &own).await.unwrap();
        trash.remove(&scoped, Kind::Memory, &own).await.unwrap();
        assert_not_found(trash.restore(&bench.caller, Kind::Memory, &own).await, "item in trash");
    }
}

#[tokio::test]
async fn old_memories_are_removed_for_good() {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    for bench in benches().await {
        let memory = bench.memory("old", vec![]).await;
        bench.memories().delete(&bench.caller, "old").await.unwrap();
        let later = bench.context.clock.now().plus(DAY * 2);
        let context = bench.by_clock(Arc::new(ManualClock::new(later)));
        assert_eq!(Trash::new(context, Some(DAY)).sweep().await.unwrap(), 1);
        let restored = bench.trash().restore(&bench.caller, Kind::Memory, &memory.id.to_string()).await;
        assert_not_found(restored, "item in trash");
        assert_eq!(bench.wrong().await, [], "{}", bench.engine());
    }
}
