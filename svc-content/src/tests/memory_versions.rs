//! Versions of memories, on every engine.

use super::memory_rules::of_file;
use super::*;
use crate::memories::{Memories, MemoryPatch};
use crate::model::Memory;

fn titles(memory: &Memory) -> Vec<&str> {
    memory.members.iter().map(|one| one.title.as_deref().unwrap_or("?")).collect()
}

async fn patched(memories: &Memories, caller: &Caller, memory: &Memory, patch: MemoryPatch) -> Memory {
    memories.update(caller, &memory.id.to_string(), patch).await.unwrap().item
}

#[tokio::test]
async fn what_a_memory_was_is_read_and_comes_back() {
    for bench in benches().await {
        let memories = bench.memories();
        let (a, b) = (bench.file("a.md", None).await, bench.file("b.md", None).await);
        let made = bench.memory("Guide", vec![of_file(a.id), of_file(b.id)]).await;
        let id = made.id.to_string();
        let patch = MemoryPatch {
            name: Some("Handbook".into()),
            slug: Some("handbook".into()),
            use_when: Some(Some("always".into())),
            is_public: Some(true),
            remove: vec![made.members[0].id.to_string()],
            ..MemoryPatch::default()
        };
        patched(&memories, &bench.caller, &made, patch).await;
        let added = memories.add_members(&bench.caller, &id, vec![of_file(a.id)]).await.unwrap().item;
        memories.move_member(&bench.caller, &id, &added[0].id.to_string(), 0).await.unwrap();
        memories.remove_member(&bench.caller, &id, &made.members[1].id.to_string()).await.unwrap();

        let listed =
            memories.versions(&bench.caller, &id, PageRequest::new(PAGES, 3, "").unwrap()).await.unwrap();
        let told: Vec<_> =
            listed.items.iter().map(|one| (one.version, one.name.as_str(), one.members)).collect();
        assert_eq!(told, [(5, "Handbook", 1), (4, "Handbook", 2), (3, "Handbook", 2)], "{}", bench.engine());
        assert_eq!((listed.total, listed.items[0].author.is_some()), (5, true));
        let rest = PageRequest::new(PAGES, 3, &listed.next).unwrap();
        let rest = memories.versions(&bench.caller, &id, rest).await.unwrap();
        assert_eq!(rest.items.iter().map(|one| one.version).collect::<Vec<_>>(), [2, 1]);

        let (_, first) = memories.version(&bench.caller, &id, 1).await.unwrap();
        assert_eq!((first.name.as_str(), first.slug.as_str(), first.version), ("Guide", "guide", 1));
        assert_eq!((titles(&first), first.is_public), (vec!["a.md", "b.md"], false));
        let (_, moved) = memories.version(&bench.caller, "handbook", 4).await.unwrap();
        assert_eq!(titles(&moved), ["a.md", "b.md"]);
        assert_not_found(memories.version(&bench.caller, &id, 6).await, "version");

        let refused = memories.restore_version(&bench.caller, &id, 2, false).await;
        assert!(matches!(refused, Err(Error::MayNotRemove)), "{refused:?}");
        let restored = memories.restore_version(&bench.caller, &id, 1, false).await.unwrap();
        let now = &restored.item;
        assert_eq!((now.version, now.name.as_str(), now.slug.as_str()), (6, "Guide", "handbook"));
        assert_eq!((now.use_when.clone(), now.is_public), (None, true));
        assert_eq!(titles(now), ["a.md", "b.md"]);
        let read = bench.resolved(&bench.caller, now).await.memory;
        assert_eq!(&read, now, "{}", bench.engine());
        assert_eq!(now.members[1].id, made.members[1].id);
        // Restoring the current state changes nothing.
        let again = memories.restore_version(&bench.caller, &id, 1, false).await.unwrap();
        assert_eq!((again.item.version, again.position), (6, restored.position));
        let (_, newest) = memories.version(&bench.caller, &id, 6).await.unwrap();
        assert_eq!(titles(&newest), ["a.md", "b.md"]);
    }
}

#[tokio::test]
async fn members_come_back_into_their_places_even_when_they_are_gone() {
    for bench in benches().await {
        let memories = bench.memories();
        let mut files = Vec::new();
        for name in ["a.md", "b.md", "c.md"] {
            files.push(bench.file(name, None).await);
        }
        let made = bench.memory("Guide", files.iter().map(|file| of_file(file.id)).collect()).await;
        let id = made.id.to_string();
        for member in &made.members[..2] {
            memories.remove_member(&bench.caller, &id, &member.id.to_string()).await.unwrap();
        }
        bench.files.delete(&bench.caller, &files[1].id.to_string()).await.unwrap();
        let back = memories.restore_version(&bench.caller, &id, 1, true).await.unwrap().item;
        assert_eq!(titles(&back), ["a.md", "?", "c.md"]);
        let read = bench.resolved(&bench.caller, &back).await.memory;
        assert_eq!(titles(&read), ["a.md", "?", "c.md"], "{}", bench.engine());
        let positions: Vec<u32> = read.members.iter().map(|one| one.position).collect();
        assert_eq!(positions, [0, 1, 2]);
        let fewer = memories.restore_version(&bench.caller, &id, 3, true).await.unwrap().item;
        assert_eq!(titles(&fewer), ["c.md"]);
    }
}

#[tokio::test]
async fn a_scope_sees_of_versions_what_it_sees_of_memories() {
    for bench in benches().await {
        let memories = bench.memories();
        let (mine, theirs) = (bench.folder("mine", None).await, bench.folder("theirs", None).await);
        let seen = bench.file("seen.md", Some(mine.id)).await;
        let hidden = bench.file("hidden.md", Some(theirs.id)).await;
        let made = bench.memory("Guide", vec![of_file(seen.id), of_file(hidden.id)]).await;
        let id = made.id.to_string();
        let scoped = Caller { scope: Scope::Folders([mine.id].into()), ..bench.caller.clone() };
        let renamed = MemoryPatch { name: Some("Renamed".into()), ..MemoryPatch::default() };
        patched(&memories, &scoped, &made, renamed).await;
        let (_, was) = memories.version(&scoped, &id, 2).await.unwrap();
        assert_eq!(titles(&was), ["seen.md", "?"], "{}", bench.engine());
        // A write by a scoped caller keeps what the caller does not see.
        let (_, whole) = memories.version(&bench.caller, &id, 2).await.unwrap();
        assert_eq!(titles(&whole), ["seen.md", "hidden.md"]);
        memories.restore_version(&scoped, &id, 1, true).await.unwrap();
        memories.remove_member(&bench.caller, &id, &made.members[1].id.to_string()).await.unwrap();
        assert_out_of_scope(memories.restore_version(&scoped, &id, 1, true).await);
        let other = Caller { workspace: caller(2).workspace, ..bench.caller.clone() };
        assert_not_found(
            memories.versions(&other, &id, PageRequest::new(PAGES, 0, "").unwrap()).await,
            "memory",
        );
    }
}

#[tokio::test]
async fn the_newest_hundred_versions_are_kept() {
    for bench in benches().await {
        let memories = bench.memories();
        let made = bench.memory("Guide", Vec::new()).await;
        let id = made.id.to_string();
        for number in 0..102 {
            let patch = MemoryPatch { name: Some(format!("Guide {number}")), ..MemoryPatch::default() };
            patched(&memories, &bench.caller, &made, patch).await;
        }
        let listed =
            memories.versions(&bench.caller, &id, PageRequest::new(PAGES, 0, "").unwrap()).await.unwrap();
        let (newest, oldest) = (listed.items.first().unwrap().version, listed.items.last().unwrap().version);
        assert_eq!((listed.total, newest, oldest), (100, 103, 4), "{}", bench.engine());
        memories.delete(&bench.caller, &id).await.unwrap();
        assert_not_found(memories.version(&bench.caller, &id, 103).await, "memory");
    }
}
