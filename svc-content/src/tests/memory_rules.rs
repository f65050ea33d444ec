use cairn_chassis::feed::Kind;
use cairn_proto::ids::MemoryId;
use tokio::task::JoinSet;

use super::*;
use crate::documents::DocumentRef;
use crate::memories::{MemberDraft, Memories, MemoryDraft, MemoryPatch, Resolved};
use crate::model::{MemberKind, Memory};

impl Bench {
    pub(super) fn memories(&self) -> Memories {
        Memories::new(self.context.clone())
    }

    pub(super) async fn memory(&self, name: &str, members: Vec<MemberDraft>) -> Memory {
        let draft = MemoryDraft { members, ..named(name) };
        self.memories().create(&self.caller, draft).await.unwrap().item
    }

    pub(super) async fn resolved(&self, caller: &Caller, memory: &Memory) -> Resolved {
        self.memories().resolve(caller, &memory.id.to_string()).await.unwrap()
    }
}

fn named(name: &str) -> MemoryDraft {
    MemoryDraft { name: name.to_owned(), ..MemoryDraft::default() }
}

pub(super) fn of_file(id: impl ToString) -> MemberDraft {
    MemberDraft { kind: Some(MemberKind::File), file_id: Some(id.to_string()), ..MemberDraft::default() }
}

fn of_folder(id: impl ToString) -> MemberDraft {
    MemberDraft { kind: Some(MemberKind::Folder), folder_id: Some(id.to_string()), ..MemberDraft::default() }
}

fn paths(resolved: &Resolved) -> Vec<Vec<String>> {
    let of = |entries: &Vec<(File, String)>| entries.iter().map(|(file, _)| file.path.clone()).collect();
    resolved.entries.iter().map(of).collect()
}

pub(super) fn codes(resolved: &Resolved) -> Vec<&'static str> {
    resolved.coverage.iter().map(|note| note.code).collect()
}

#[tokio::test]
async fn a_memory_is_made_changed_and_removed() {
    for bench in benches().await {
        let memories = bench.memories();
        let folder = bench.folder("f", None).await;
        let file = bench.file("a.md", Some(folder.id)).await;
        let start = bench.context.feed.head(bench.caller.workspace).await.unwrap();
        let draft = MemoryDraft {
            description: Some("What we do".into()),
            use_when: Some("always".into()),
            members: vec![of_folder(folder.id), of_file(file.id)],
            ..named("Release process")
        };
        let made = memories.create(&bench.caller, draft).await.unwrap();
        let memory = made.item;
        assert_eq!((memory.slug.as_str(), memory.version, made.position), ("release-process", 1, start + 1));
        let titles = |memory: &Memory| -> Vec<_> {
            memory.members.iter().map(|one| (one.position, one.title.clone().unwrap_or_default())).collect()
        };
        assert_eq!(titles(&memory), [(0, "f".into()), (1, "a.md".into())]);
        let listed = memories.list(&bench.caller, first_page()).await.unwrap();
        assert_eq!((listed.items, listed.total), (vec![memory.clone()], 1), "{}", bench.engine());

        let patch = MemoryPatch {
            name: Some("Release".into()),
            description: Some(None),
            is_public: Some(true),
            add: vec![of_file(file.id)],
            remove: vec![memory.members[0].id.to_string(); 2],
            ..MemoryPatch::default()
        };
        let changed = memories.update(&bench.caller, "release-process", patch).await.unwrap().item;
        assert_eq!((changed.version, changed.slug.as_str(), changed.is_public), (2, "release-process", true));
        assert_eq!((changed.description.clone(), changed.use_when.as_deref()), (None, Some("always")));
        assert_eq!(titles(&changed), [(0, "a.md".into()), (1, "a.md".into())]);
        let read = bench.resolved(&bench.caller, &memory).await.memory;
        assert_eq!(read, changed);

        let same = MemoryPatch { name: Some("Release".into()), ..MemoryPatch::default() };
        let unchanged = memories.update(&bench.caller, "release-process", same).await.unwrap();
        assert_eq!((unchanged.item.version, unchanged.position), (2, start + 2));
        let more = vec![of_folder(folder.id)];
        let added = memories.add_members(&bench.caller, &memory.id.to_string(), more).await.unwrap();
        assert_eq!((added.item.len(), added.item[0].position, added.position), (1, 2, start + 3));
        let first = changed.members[0].id.to_string();
        let moved = memories.move_member(&bench.caller, "release-process", &first, 9).await.unwrap();
        assert_eq!((moved.item.version, moved.position), (4, start + 4));
        let expected = [(0, "a.md".into()), (1, "f".into()), (2, "a.md".into())];
        assert_eq!(titles(&moved.item), expected, "{}", bench.engine());
        assert_eq!(moved.item.members[2].id.to_string(), first);
        assert_eq!(bench.resolved(&bench.caller, &memory).await.memory, moved.item);
        let same = memories.move_member(&bench.caller, "release-process", &first, 2).await.unwrap();
        assert_eq!((same.item.version, same.position), (4, start + 4), "it stands there already");
        let moved = memories.move_member(&bench.caller, "release-process", &first, 0).await.unwrap().item;
        assert_eq!(moved.members[0].id.to_string(), first, "{}", bench.engine());
        assert_eq!(bench.resolved(&bench.caller, &memory).await.memory, moved);
        // The id of the memory is not that of a member.
        let not_a_member = memory.id.to_string();
        let unknown = memories.move_member(&bench.caller, "release-process", &not_a_member, 0);
        assert_not_found(unknown.await, "member");
        memories.remove_member(&bench.caller, "release-process", &first).await.unwrap();
        let read = bench.resolved(&bench.caller, &memory).await.memory;
        assert_eq!((read.version, titles(&read)), (6, vec![(0, "a.md".into()), (1, "f".into())]));
        let again = memories.remove_member(&bench.caller, "release-process", &first).await;
        assert_not_found(again, "member");

        memories.delete(&bench.caller, "release-process").await.unwrap();
        assert_not_found(memories.resolve(&bench.caller, &memory.id.to_string()).await, "memory");
        assert_not_found(memories.delete(&bench.caller, "release-process").await, "memory");
        bench.files.get(&bench.caller, &file.id.to_string()).await.unwrap();
        let expected = [1, 2, 3, 4, 5, 6].map(|_| Entry::upsert(Kind::Memory, memory.id));
        let mut feed = bench.entries_after(start).await;
        assert_eq!(feed.pop(), Some(Entry::delete(Kind::Memory, memory.id)));
        assert_eq!(feed, expected, "{}", bench.engine());
    }
}

#[tokio::test]
async fn a_slug_belongs_to_one_memory_of_the_workspace() {
    for bench in benches().await {
        let memories = bench.memories();
        let slugs = [bench.memory("A b", vec![]).await.slug, bench.memory("a B!", vec![]).await.slug];
        assert_eq!(slugs, ["a-b", "a-b-2"]);
        let given = |slug: &str| MemoryDraft { slug: Some(slug.into()), ..named("x") };
        let taken = memories.create(&bench.caller, given("a-b")).await;
        assert!(matches!(taken, Err(Error::SlugTaken(_))), "{taken:?}");
        memories.create(&caller(2), given("a-b")).await.unwrap();
        let other = memories.create(&bench.caller, given("free")).await.unwrap().item;
        let to = |slug: &str| MemoryPatch { slug: Some(slug.into()), ..MemoryPatch::default() };
        let taken = memories.update(&bench.caller, "free", to("a-b-2")).await;
        assert!(matches!(taken, Err(Error::SlugTaken(_))), "{taken:?}");
        let kept = memories.update(&bench.caller, "free", to("free")).await.unwrap().item;
        assert_eq!((kept.version, kept.id), (1, other.id));
        memories.update(&bench.caller, "free", to("freed")).await.unwrap();
        assert_not_found(memories.resolve(&bench.caller, "free").await, "memory");
        assert_not_found(memories.resolve(&bench.caller, "no such\0").await, "memory");
        assert_not_found(memories.resolve(&caller(2), &other.id.to_string()).await, "memory");
    }
}

#[tokio::test]
async fn every_violation_is_named_at_once() {
    for bench in benches().await {
        let memories = bench.memories();
        let both = MemberDraft { folder_id: Some(missing_folder().to_string()), ..of_file("odd") };
        let draft = MemoryDraft {
            name: "a\nb".into(),
            slug: Some("No Slug".into()),
            description: Some("x".repeat(10_001)),
            use_when: Some("\0".into()),
            members: vec![
                MemberDraft::default(),
                both,
                MemberDraft { kind: Some(MemberKind::Folder), ..MemberDraft::default() },
            ],
            is_public: false,
        };
        let expected = [
            ("name", "invalid"),
            ("slug", "invalid"),
            ("description", "too_long"),
            ("useWhen", "invalid"),
            ("members[0].kind", "required"),
            ("members[1].fileId", "invalid"),
            ("members[1].folderId", "invalid"),
            ("members[2].folderId", "required"),
        ];
        assert_eq!(violations(memories.create(&bench.caller, draft).await), pairs(&expected));

        let file = bench.file("a", None).await;
        let memory = bench.memory("m", vec![of_file(file.id); 100]).await;
        let id = memory.id.to_string();
        let adding = async |count: usize| {
            memories.add_members(&bench.caller, &id, vec![of_file(file.id); count]).await
        };
        assert_eq!(violations(adding(0).await), pairs(&[("members", "too_few")]));
        assert_eq!(violations(adding(101).await), pairs(&[("members", "too_many")]));
        for _ in 0..9 {
            adding(100).await.unwrap();
        }
        assert_eq!(violations(adding(1).await), pairs(&[("members", "too_many")]), "{}", bench.engine());
        assert_eq!(bench.resolved(&bench.caller, &memory).await.memory.version, 10);
        let patch = MemoryPatch { unknown_fields: vec!["version".into()], ..MemoryPatch::default() };
        assert_eq!(
            violations(memories.update(&bench.caller, &id, patch).await),
            pairs(&[("updateMask", "invalid")])
        );
    }
}

#[tokio::test]
async fn members_refer_to_what_lives_in_the_workspace() {
    for bench in benches().await {
        let gone = bench.file("gone", None).await;
        bench.files.delete(&bench.caller, &gone.id.to_string()).await.unwrap();
        let foreign = bench.files.create(&caller(2), draft("foreign", None)).await.unwrap().item;
        let document = MemberDraft {
            kind: Some(MemberKind::SourceDocument),
            source_document_id: Some(missing_file()),
            ..MemberDraft::default()
        };
        let fine = bench.file("fine", None).await;
        let members = vec![
            of_file(fine.id),
            of_file(gone.id),
            of_file(foreign.id),
            of_folder(missing_folder()),
            of_folder(fine.id),
            document,
        ];
        let refused = bench.memories().create(&bench.caller, MemoryDraft { members, ..named("m") }).await;
        let Err(Error::NoTargets(missing)) = refused else { panic!("{refused:?}") };
        let places: Vec<_> = missing.into_iter().map(|violation| violation.path).collect();
        let expected = [
            "members[1].fileId",
            "members[2].fileId",
            "members[3].folderId",
            "members[4].folderId",
            "members[5].sourceDocumentId",
        ];
        assert_eq!(places, expected, "{}", bench.engine());
        let patch = MemoryPatch { remove: vec!["odd".into(), missing_file()], ..MemoryPatch::default() };
        let memory = bench.memory("m", vec![]).await;
        let refused = bench.memories().update(&bench.caller, &memory.slug, patch).await;
        assert!(matches!(refused, Err(Error::NoTargets(missing)) if missing.len() == 2));
    }
}

#[tokio::test]
async fn a_memory_resolves_to_current_contents() {
    for bench in benches().await {
        let top = bench.folder("top", None).await;
        let inner = bench.folder("inner", Some(top.id)).await;
        bench.file("z.md", Some(top.id)).await;
        bench.file("a.md", Some(inner.id)).await;
        let root = bench.file("root.md", None).await;
        let empty = bench.folder("empty", None).await;
        let members = vec![of_file(root.id), of_folder(top.id), of_folder(empty.id), of_folder(inner.id)];
        let memory = bench.memory("m", members).await;
        let changed = files::FilePatch { content: Some("new".into()), ..files::FilePatch::default() };
        bench.files.update(&bench.caller, &root.id.to_string(), changed).await.unwrap();
        let renamed = folders::FolderPatch { name: Some("TOP".into()), ..folders::FolderPatch::default() };
        bench.folders.update(&bench.caller, &top.id.to_string(), renamed).await.unwrap();

        let resolved = bench.resolved(&bench.caller, &memory).await;
        let expected =
            [vec!["/root.md"], vec!["/TOP/inner/a.md", "/TOP/z.md"], vec![], vec!["/TOP/inner/a.md"]];
        assert_eq!(paths(&resolved), expected, "{}", bench.engine());
        assert_eq!(resolved.entries[0][0].1, "new");
        assert_eq!(resolved.entries[3][0].1, "content of a.md");
        assert_eq!(resolved.entries[1][0].0.folders, [top.id, inner.id]);
        assert_eq!(codes(&resolved), Vec::<&str>::new());

        bench.folders.delete(&bench.caller, &inner.id.to_string()).await.unwrap();
        bench.files.delete(&bench.caller, &root.id.to_string()).await.unwrap();
        let resolved = bench.resolved(&bench.caller, &memory).await;
        assert_eq!(paths(&resolved), [vec![], vec!["/TOP/z.md"], vec![], vec![]]);
        assert_eq!(codes(&resolved), ["target_deleted", "target_deleted"]);
        assert_eq!(resolved.coverage[1].target.to_string(), inner.id.to_string());
        assert_eq!(resolved.coverage[0].member, memory.members[0].id);
        assert_eq!(resolved.memory.members[0].title, None);
        let empty = bench.memory("nothing", vec![]).await;
        assert_eq!(bench.resolved(&bench.caller, &empty).await.entries, Vec::<Vec<_>>::new());
    }
}

#[tokio::test]
async fn a_large_folder_is_cut_at_fifty_files() {
    for bench in benches().await {
        let (top, full) = (bench.folder("top", None).await, bench.folder("full", None).await);
        let inner = bench.folder("inner", Some(top.id)).await;
        for number in 0..51 {
            bench.file(&format!("{number:02}"), Some(if number % 2 == 0 { top.id } else { inner.id })).await;
        }
        for number in 0..50 {
            bench.file(&format!("{number:02}"), Some(full.id)).await;
        }
        let memory = bench.memory("m", vec![of_folder(top.id), of_folder(full.id)]).await;
        let resolved = bench.resolved(&bench.caller, &memory).await;
        let counts: Vec<_> = resolved.entries.iter().map(Vec::len).collect();
        assert_eq!(
            (counts, codes(&resolved)),
            (vec![50, 50], vec!["folder_truncated"]),
            "{}",
            bench.engine()
        );
        assert!(resolved.coverage[0].message.contains("51"), "{:?}", resolved.coverage);
        assert_eq!(resolved.coverage[0].member, memory.members[0].id);
        assert!(paths(&resolved)[0].is_sorted());

        // Files outside of the scope neither count nor use up the limit of fifty.
        let scoped = bench.resolved(&bench.scoped(&[inner.id]), &memory).await;
        assert_eq!(codes(&scoped), ["out_of_scope", "out_of_scope"]);
        assert_eq!(scoped.entries.iter().map(Vec::len).collect::<Vec<_>>(), [25, 0]);
    }
}

#[tokio::test]
async fn contents_stop_at_the_budget() {
    for bench in benches().await {
        let mut members = Vec::new();
        for number in 0..4_u8 {
            let content = char::from(b'a' + number).to_string().repeat(5_000_000);
            let file = files::FileDraft { content, ..draft(&number.to_string(), None) };
            members.push(of_file(bench.files.create(&bench.caller, file).await.unwrap().item.id));
        }
        let memory = bench.memory("m", members).await;
        let resolved = bench.resolved(&bench.caller, &memory).await;
        assert_eq!(codes(&resolved), ["budget_exhausted"], "{}", bench.engine());
        assert_eq!(resolved.entries.iter().map(Vec::len).collect::<Vec<_>>(), [1, 1, 1, 0]);
        assert_eq!(resolved.coverage[0].member, memory.members[3].id);
    }
}

#[tokio::test]
async fn a_folder_scope_sees_its_part_and_publishes_nothing_else() {
    for bench in benches().await {
        let memories = bench.memories();
        let (mine, other) = (bench.folder("mine", None).await, bench.folder("other", None).await);
        let inner = bench.folder("inner", Some(other.id)).await;
        let inside = bench.file("inside", Some(mine.id)).await;
        let outside = bench.file("outside", Some(other.id)).await;
        let below = bench.file("below", Some(inner.id)).await;
        let root = bench.file("root", None).await;
        let members = [of_file(inside.id), of_file(outside.id), of_folder(other.id), of_file(root.id)];
        let memory = bench.memory("m", members.to_vec()).await;
        let scoped = bench.scoped(&[mine.id, inner.id]);

        let resolved = bench.resolved(&scoped, &memory).await;
        assert_eq!(paths(&resolved), [vec!["/mine/inside"], vec![], vec!["/other/inner/below"], vec![]]);
        assert_eq!(codes(&resolved), ["out_of_scope"; 3], "{}", bench.engine());
        assert!(resolved.coverage.iter().all(|note| !note.message.contains("outside\"")));
        let titles: Vec<_> = resolved.memory.members.iter().map(|member| member.title.as_deref()).collect();
        assert_eq!(titles, [Some("inside"), None, None, None]);
        let listed = memories.list(&scoped, first_page()).await.unwrap();
        assert_eq!(listed.items[0].members, resolved.memory.members);
        let nowhere = bench.resolved(&bench.scoped(&[]), &memory).await;
        assert_eq!((paths(&nowhere).concat().len(), codes(&nowhere).len()), (0, 4));

        let id = memory.id.to_string();
        assert_out_of_scope(memories.add_members(&scoped, &id, vec![of_file(outside.id)]).await);
        assert_out_of_scope(memories.add_members(&scoped, &id, vec![of_file(root.id)]).await);
        assert_out_of_scope(memories.add_members(&scoped, &id, vec![of_folder(other.id)]).await);
        memories.add_members(&scoped, &id, vec![of_file(below.id), of_folder(mine.id)]).await.unwrap();
        let public = MemoryPatch { is_public: Some(true), ..MemoryPatch::default() };
        assert_out_of_scope(memories.update(&scoped, &id, public.clone()).await);
        assert_out_of_scope(memories.remove_member(&scoped, &id, &memory.members[1].id.to_string()).await);
        let outer = memory.members[1].id.to_string();
        assert_out_of_scope(memories.move_member(&scoped, &id, &outer, 0).await);
        assert_out_of_scope(memories.delete(&scoped, &id).await);
        memories.remove_member(&scoped, &id, &memory.members[0].id.to_string()).await.unwrap();
        let renamed = MemoryPatch { name: Some("n".into()), ..MemoryPatch::default() };
        assert_eq!(memories.update(&scoped, &id, renamed).await.unwrap().item.version, 4);
        let own = MemoryDraft { is_public: true, members: vec![of_file(inside.id)], ..named("own") };
        let own = memories.create(&scoped, own).await.unwrap().item;
        memories.delete(&scoped, &own.slug).await.unwrap();
    }
}

#[tokio::test]
async fn only_a_public_memory_is_listed_and_only_by_who_may_publish() {
    for bench in benches().await {
        let memories = bench.memories();
        bench.memory("m", Vec::new()).await;
        let listed = |is_listed| MemoryPatch { is_listed: Some(is_listed), ..MemoryPatch::default() };
        let refused = memories.update(&bench.caller, "m", listed(true)).await.unwrap_err();
        assert!(format!("{refused:?}").contains("not public"), "{refused:?}");
        let public = |is_public| MemoryPatch { is_public: Some(is_public), ..MemoryPatch::default() };
        let both = MemoryPatch { is_listed: Some(true), ..public(true) };
        assert!(memories.update(&bench.caller, "m", both).await.unwrap().item.is_listed);
        assert!(
            memories
                .resolve_public("m", Some(&bench.caller.workspace.to_string()))
                .await
                .unwrap()
                .memory
                .is_listed
        );

        let writer = Caller { may_publish: false, ..bench.caller.clone() };
        assert!(!memories.update(&writer, "m", listed(false)).await.unwrap().item.is_listed);
        assert!(memories.update(&writer, "m", listed(true)).await.is_err());
        // Made private and public again, it does not become listed as a side effect.
        memories.update(&bench.caller, "m", listed(true)).await.unwrap();
        assert!(!memories.update(&bench.caller, "m", public(false)).await.unwrap().item.is_listed);
        assert!(!memories.update(&bench.caller, "m", public(true)).await.unwrap().item.is_listed);
    }
}

#[tokio::test]
async fn the_public_is_served_public_memories_only() {
    for bench in benches().await {
        let memories = bench.memories();
        let file = bench.file("a", None).await;
        let memory = bench.memory("m", vec![of_file(file.id)]).await;
        let (id, workspace) = (memory.id.to_string(), bench.caller.workspace.to_string());
        let ways = [(id.as_str(), None), (&id, Some(workspace.as_str())), ("m", Some(&workspace))];
        for (named, home) in ways {
            assert_not_found(memories.resolve_public(named, home).await, "memory");
        }
        let public = MemoryPatch { is_public: Some(true), ..MemoryPatch::default() };
        memories.update(&bench.caller, "m", public).await.unwrap();
        for (named, home) in ways {
            let resolved = memories.resolve_public(named, home).await.unwrap();
            assert_eq!(resolved.entries[0][0].1, "content of a", "{}", bench.engine());
        }
        let elsewhere = caller(2).workspace.to_string();
        for (named, home) in [("m", None), ("m", Some(elsewhere.as_str())), (&id, Some("odd")), ("\0", None)]
        {
            assert_not_found(memories.resolve_public(named, home).await, "memory");
        }
    }
}

#[tokio::test]
async fn guidance_is_a_document_for_the_whole_workspace() {
    for bench in benches().await {
        let folder = bench.folder("f", None).await;
        let draft = MemoryDraft { use_when: Some("a wombat asks".into()), ..named("Wombats") };
        let memory = bench.memories().create(&bench.caller, draft).await.unwrap().item;
        let refs = [
            DocumentRef { kind: Some(Kind::Memory), id: memory.id.to_string() },
            DocumentRef { kind: Some(Kind::File), id: memory.id.to_string() },
        ];
        let workspace = bench.caller.workspace.to_string();
        let read = bench.documents.read(&workspace, &refs).await.unwrap().documents;
        assert_eq!(read.len(), 1, "{}", bench.engine());
        let (document, text) = &read[0];
        assert_eq!(text, "# Wombats\n\nUse when: a wombat asks\n");
        assert_eq!((document.path.as_str(), document.kind), ("/memories/wombats", Kind::Memory));
        let confirmed = bench.documents.confirm(&bench.caller, &refs).await.unwrap();
        assert_eq!(confirmed, std::slice::from_ref(document));
        assert!(bench.documents.confirm(&bench.scoped(&[folder.id]), &refs).await.unwrap().is_empty());
        assert!(bench.documents.confirm(&caller(2), &refs).await.unwrap().is_empty());
    }
}

/// Derived slugs never collide, and of several concurrent requests for a slug one succeeds.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn slugs_stay_unique_under_concurrency() {
    for bench in benches().await {
        let mut tasks = JoinSet::new();
        for number in 0..24 {
            let (memories, caller) = (bench.memories(), bench.caller.clone());
            let slug = (number % 3 == 0).then(|| "wanted".to_owned());
            tasks.spawn(
                async move { memories.create(&caller, MemoryDraft { slug, ..named("Same name") }).await },
            );
        }
        let results = tasks.join_all().await;
        let conflicts = results.iter().filter(|result| matches!(result, Err(Error::SlugTaken(_)))).count();
        let mut slugs: Vec<_> = results.into_iter().flatten().map(|made| made.item.slug).collect();
        slugs.sort();
        let mut expected: Vec<_> = (2..=16).map(|number| format!("same-name-{number}")).collect();
        expected.extend(["same-name".to_owned(), "wanted".to_owned()]);
        expected.sort();
        assert_eq!((conflicts, slugs), (7, expected), "{}", bench.engine());
    }
}

/// Concurrent changes of members: positions stay without gaps, and every change counts once.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn memberships_stay_exact_under_concurrency() {
    for bench in benches().await {
        let file = bench.file("a", None).await;
        let memory = bench.memory("m", vec![of_file(file.id); 20]).await;
        let mut tasks = JoinSet::new();
        for number in 0..24_usize {
            let (memories, caller, id) = (bench.memories(), bench.caller.clone(), memory.id.to_string());
            let member = memory.members[number / 2].id.to_string();
            tasks.spawn(async move {
                if number % 2 == 0 {
                    memories.remove_member(&caller, &id, &member).await.map(drop)
                } else {
                    memories.add_members(&caller, &id, vec![of_file(file.id); 2]).await.map(drop)
                }
            });
        }
        for result in tasks.join_all().await {
            result.unwrap();
        }
        let memory = bench.resolved(&bench.caller, &memory).await.memory;
        let positions: Vec<_> = memory.members.iter().map(|member| member.position).collect();
        let expected: Vec<u32> = (0..20 - 12 + 24).collect();
        assert_eq!((memory.version, positions), (25, expected), "{}", bench.engine());
    }
}

#[tokio::test]
async fn memories_are_listed_in_pages() {
    for bench in benches().await {
        let file = bench.file("a", None).await;
        for name in ["c", "a", "b", "a"] {
            bench.memory(name, vec![of_file(file.id); 3]).await;
        }
        let first =
            bench.memories().list(&bench.caller, PageRequest::new(PAGES, 3, "").unwrap()).await.unwrap();
        let names = |page: &[Memory]| page.iter().map(|memory| memory.name.clone()).collect::<Vec<_>>();
        assert_eq!((names(&first.items), first.total), (vec!["a".into(), "a".into(), "b".into()], 4));
        assert!(first.items.iter().all(|memory| memory.members.len() == 3));
        let rest = bench
            .memories()
            .list(&bench.caller, PageRequest::new(PAGES, 3, &first.next).unwrap())
            .await
            .unwrap();
        assert_eq!((names(&rest.items), rest.next.as_str()), (vec!["c".into()], ""), "{}", bench.engine());
        let unknown = MemoryId(Uuid::from_u128(5)).to_string();
        assert_not_found(bench.memories().resolve(&bench.caller, &unknown).await, "memory");
    }
}
