use cairn_chassis::feed::{Entry, Kind};

use super::*;
use crate::files::{FileDraft, FilePatch};
use crate::model::content_hash;

#[tokio::test]
async fn a_file_comes_back_as_it_was_made() {
    for bench in benches().await {
        let folder = bench.folder("Guides", None).await;
        let inner = bench.folder("Deep", Some(folder.id)).await;
        let content = "# Title\n\n".to_owned() + &"lorem ipsum ".repeat(1_000);
        let asked = FileDraft {
            content: content.clone(),
            tags: vec!["b".into(), "a".into(), "b".into()],
            ..draft("Ünïcode.md", Some(inner.id))
        };
        let made = bench.files.create(&bench.caller, asked).await.unwrap();
        assert_eq!(made.position, 3);
        assert_eq!(made.item.path, "/Guides/Deep/Ünïcode.md");
        assert_eq!(made.item.tags, ["b", "a"]);
        assert_eq!((made.item.version, made.item.size_bytes), (1, content.len() as u64));
        assert_eq!(made.item.content_hash, content_hash(&content));

        let (file, text) = bench.files.get(&bench.caller, &made.item.id.to_string()).await.unwrap();
        assert_eq!((file, text), (made.item, content), "{}", bench.engine());
    }
}

#[tokio::test]
async fn an_empty_file_in_the_root() {
    for bench in benches().await {
        let asked = FileDraft { content: String::new(), ..draft("empty.txt", None) };
        let made = bench.files.create(&bench.caller, asked).await.unwrap().item;
        let (file, text) = bench.files.get(&bench.caller, &made.id.to_string()).await.unwrap();
        assert_eq!((file.path.as_str(), text.as_str(), file.folder_id()), ("/empty.txt", "", None));
    }
}

#[tokio::test]
async fn siblings_may_share_a_name_and_bodies() {
    for bench in benches().await {
        let one = bench.file("a.md", None).await;
        let other = bench.file("a.md", None).await;
        assert_ne!(one.id, other.id);
        assert_eq!(one.content_hash, other.content_hash);
        let delete = bench.files.delete(&bench.caller, &one.id.to_string()).await;
        assert!(delete.is_ok(), "{delete:?}");
        assert!(bench.files.get(&bench.caller, &other.id.to_string()).await.is_ok());
    }
}

#[tokio::test]
async fn all_violations_are_said_at_once() {
    for bench in benches().await {
        let bad = FileDraft {
            name: "a/b\0".into(),
            content: "x".repeat(5_242_881) + "\0",
            file_type: None,
            folder_id: Some("root".into()),
            tags: vec![String::new()],
            description: Some("x".repeat(1_001)),
        };
        let found = violations(bench.files.create(&bench.caller, bad).await);
        assert_eq!(
            found,
            pairs(&[
                ("name", "invalid"),
                ("name", "invalid"),
                ("content", "too_long"),
                ("content", "invalid"),
                ("fileType", "required"),
                ("tags[0]", "required"),
                ("description", "too_long"),
                ("folderId", "invalid"),
            ])
        );
        let patch = FilePatch {
            name: Some(String::new()),
            folder_id: Some(Some("x".into())),
            unknown_fields: vec!["version".into()],
            ..FilePatch::default()
        };
        let found = violations(bench.files.update(&bench.caller, &missing_file(), patch).await);
        assert_eq!(found, pairs(&[("updateMask", "invalid"), ("name", "required"), ("folderId", "invalid")]));
        assert!(bench.changes().await.is_empty());
    }
}

#[tokio::test]
async fn five_mebibytes_fit() {
    for bench in benches().await {
        let asked = FileDraft { content: "é".repeat(2_621_440), ..draft("big.txt", None) };
        let made = bench.files.create(&bench.caller, asked).await.unwrap().item;
        assert_eq!(made.size_bytes, 5_242_880);
        let (_, text) = bench.files.get(&bench.caller, &made.id.to_string()).await.unwrap();
        assert_eq!(text.len(), 5_242_880);
    }
}

#[tokio::test]
async fn what_is_not_there_is_named() {
    for bench in benches().await {
        let into_nowhere = draft("a.md", Some(missing_folder()));
        let error = bench.files.create(&bench.caller, into_nowhere).await.unwrap_err();
        assert_eq!(error.to_string(), format!("no folder {}", missing_folder()));
        assert_not_found(bench.files.get(&bench.caller, &missing_file()).await, "file");
        assert_not_found(bench.files.get(&bench.caller, "odd\0id").await, "file");
        assert_not_found(bench.files.delete(&bench.caller, &missing_file()).await, "file");
        assert_not_found(
            bench.files.update(&bench.caller, &missing_file(), FilePatch::default()).await,
            "file",
        );
        let list =
            bench.files.list(&bench.caller, in_folder(Some(missing_folder()), true), first_page()).await;
        assert_not_found(list, "folder");
    }
}

#[tokio::test]
async fn another_workspace_sees_nothing() {
    for bench in benches().await {
        let folder = bench.folder("f", None).await;
        let file = bench.file("a.md", Some(folder.id)).await;
        let id = file.id.to_string();
        let stranger = caller(2);
        assert_not_found(bench.files.get(&stranger, &id).await, "file");
        assert_not_found(bench.files.delete(&stranger, &id).await, "file");
        assert_not_found(bench.files.create(&stranger, draft("x", Some(folder.id))).await, "folder");
        let own = bench.files.create(&stranger, draft("own", None)).await.unwrap().item;
        let patch = FilePatch { folder_id: Some(Some(folder.id.to_string())), ..FilePatch::default() };
        assert_not_found(bench.files.update(&stranger, &own.id.to_string(), patch).await, "folder");
        assert_eq!(bench.names(&stranger, None).await, ["own"]);
        // Scoped tokens of another workspace get the same error.
        let scoped = Caller { scope: Scope::Folders([folder.id].into()), ..stranger };
        assert_not_found(bench.files.get(&scoped, &id).await, "file");
        assert_eq!(bench.names(&scoped, None).await, Vec::<String>::new());
    }
}

#[tokio::test]
async fn an_update_changes_what_it_names() {
    for bench in benches().await {
        let folder = bench.folder("f", None).await;
        let file = bench.file("a.md", None).await;
        let id = file.id.to_string();
        let patch = FilePatch { name: Some("b.md".into()), ..FilePatch::default() };
        let renamed = bench.files.update(&bench.caller, &id, patch).await.unwrap();
        assert_eq!((renamed.item.path.as_str(), renamed.item.version, renamed.position), ("/b.md", 2, 3));
        assert_eq!(bench.entries_after(2).await, [Entry::upsert(Kind::File, &id)]);

        let patch = FilePatch {
            folder_id: Some(Some(folder.id.to_string())),
            content: Some("new".into()),
            tags: Some(vec!["t".into()]),
            ..FilePatch::default()
        };
        let moved = bench.files.update(&bench.caller, &id, patch).await.unwrap().item;
        assert_eq!((moved.path.as_str(), moved.version, moved.size_bytes), ("/f/b.md", 3, 3));
        let (read, text) = bench.files.get(&bench.caller, &id).await.unwrap();
        assert_eq!((&read, text.as_str()), (&moved, "new"), "{}", bench.engine());
        assert_eq!(read.created_at, file.created_at);

        let patch = FilePatch { folder_id: Some(None), ..FilePatch::default() };
        let back = bench.files.update(&bench.caller, &id, patch).await.unwrap().item;
        assert_eq!((back.path.as_str(), back.folder_id()), ("/b.md", None));
    }
}

#[tokio::test]
async fn a_description_changes_without_a_version_of_the_body() {
    for bench in benches().await {
        let asked = FileDraft { description: Some("What it is for".into()), ..draft("a.md", None) };
        let file = bench.files.create(&bench.caller, asked).await.unwrap().item;
        assert_eq!(file.description.as_deref(), Some("What it is for"));
        let id = file.id.to_string();
        let told = |text: Option<&str>| FilePatch {
            description: Some(text.map(ToOwned::to_owned)),
            ..FilePatch::default()
        };
        let changed = bench.files.update(&bench.caller, &id, told(Some("Ünd now"))).await.unwrap();
        assert_eq!((changed.item.version, changed.position), (2, 2));
        let (read, _) = bench.files.get(&bench.caller, &id).await.unwrap();
        assert_eq!(read.description.as_deref(), Some("Ünd now"), "{}", bench.engine());
        let listed = bench.files.list(&bench.caller, in_folder(None, true), first_page()).await.unwrap();
        assert_eq!(listed.items, [read]);
        for none in [None, Some("")] {
            let cleared = bench.files.update(&bench.caller, &id, told(none)).await.unwrap();
            assert_eq!((cleared.item.description, cleared.item.version, cleared.position), (None, 3, 3));
        }
        let versions = store::versions::count(&bench.context.db, bench.caller.workspace, file.id).await;
        assert_eq!(versions.unwrap(), 1, "the body is the same");
    }
}

#[tokio::test]
async fn an_update_that_changes_nothing_leaves_no_trace() {
    for bench in benches().await {
        let file = bench.file("a.md", None).await;
        bench.file("other.md", None).await;
        let same = FilePatch {
            name: Some("a.md".into()),
            content: Some("content of a.md".into()),
            folder_id: Some(None),
            tags: Some(vec![]),
            ..FilePatch::default()
        };
        let answer = bench.files.update(&bench.caller, &file.id.to_string(), same).await.unwrap();
        assert_eq!((answer.item, answer.position), (file, 2));
        assert_eq!(bench.changes().await.len(), 2);
    }
}

#[tokio::test]
async fn a_stale_content_hash_is_a_conflict() {
    for bench in benches().await {
        let file = bench.file("a.md", None).await;
        let id = file.id.to_string();
        let write = |content: &str, hashes: Vec<String>| FilePatch {
            content: Some(content.into()),
            if_content_hash: hashes,
            ..FilePatch::default()
        };
        let hashes = vec!["blake3:0".to_owned(), file.content_hash.clone()];
        bench.files.update(&bench.caller, &id, write("two", hashes)).await.unwrap();
        let stale = bench.files.update(&bench.caller, &id, write("three", vec![file.content_hash])).await;
        let Err(Error::VersionConflict { actual, .. }) = stale else {
            panic!("expected a conflict: {stale:?}")
        };
        assert_eq!(actual, content_hash("two"));
    }
}

#[tokio::test]
async fn a_deleted_file_is_gone_once() {
    for bench in benches().await {
        let file = bench.file("a.md", None).await;
        let id = file.id.to_string();
        assert_eq!(bench.files.delete(&bench.caller, &id).await.unwrap(), 2);
        assert_eq!(bench.entries_after(1).await, [Entry::delete(Kind::File, &id)]);
        assert_not_found(bench.files.delete(&bench.caller, &id).await, "file");
        assert_not_found(bench.files.get(&bench.caller, &id).await, "file");
        assert_not_found(bench.files.update(&bench.caller, &id, FilePatch::default()).await, "file");
        assert!(bench.names(&bench.caller, None).await.is_empty());
    }
}

#[tokio::test]
async fn lists_page_through_everything_in_one_order() {
    for bench in benches().await {
        let folder = bench.folder("f", None).await;
        let inner = bench.folder("g", Some(folder.id)).await;
        for name in ["b", "B", "é", "a", "Z", "a", "_", "10", "9"] {
            bench.file(name, None).await;
            bench.file(name, Some(inner.id)).await;
        }
        let filters = [
            (None, 18),
            (in_folder(None, false), 9),
            (in_folder(None, true), 18),
            (in_folder(Some(folder.id), false), 0),
            (in_folder(Some(folder.id), true), 9),
            (in_folder(Some(inner.id), false), 9),
        ];
        for (filter, count) in filters {
            let mut met = Vec::new();
            let mut token = String::new();
            loop {
                let ask = PageRequest::new(PAGES, 4, &token).unwrap();
                let page = bench.files.list(&bench.caller, filter.clone(), ask).await.unwrap();
                assert_eq!(page.total, count, "{} {filter:?}", bench.engine());
                met.extend(page.items.into_iter().map(|file| (file.name, file.id)));
                token = page.next;
                if token.is_empty() {
                    break;
                }
            }
            assert_eq!(met.len() as u64, count);
            assert!(met.is_sorted(), "{} {met:?}", bench.engine());
        }
    }
}

#[tokio::test]
async fn search_finds_parts_of_names_whatever_the_case() {
    for bench in benches().await {
        let folder = bench.folder("f", None).await;
        for name in ["Plan.md", "plan", "My PLAN b", "100%_done", "100 done", "Straße", "back\\slash"] {
            bench.file(name, None).await;
        }
        bench.file("planned", Some(folder.id)).await;
        let search = async |query: &str, folder: Option<&str>, limit| {
            let (files, total) =
                bench.files.search(&bench.caller, query, folder, limit, Vec::new()).await.unwrap();
            (files.into_iter().map(|file| file.path).collect::<Vec<_>>(), total)
        };
        let (paths, total) = search("PLAN", None, 0).await;
        assert_eq!((paths.len(), total), (4, 4));
        assert_eq!(paths, ["/plan", "/Plan.md", "/f/planned", "/My PLAN b"], "{}", bench.engine());
        assert_eq!(search("plan", None, 1).await, (vec!["/plan".to_owned()], 4));
        assert_eq!(search("%", None, 0).await, (vec!["/100%_done".to_owned()], 1));
        assert_eq!(search("_", None, 0).await.1, 1);
        assert_eq!(search("\\", None, 0).await.1, 1);
        assert_eq!(search("STRASSE", None, 0).await.1, 1);
        assert_eq!(search("plan", Some(&folder.id.to_string()), 0).await.0, ["/f/planned"]);
        assert_eq!(search("nothing like it", None, 0).await.1, 0);
        assert_eq!(
            violations(bench.files.search(&bench.caller, " ", None, 0, Vec::new()).await),
            pairs(&[("query", "required")])
        );
    }
}

#[tokio::test]
async fn a_scoped_caller_works_inside_and_nowhere_else() {
    for bench in benches().await {
        let allowed = bench.folder("allowed", None).await;
        let inner = bench.folder("inner", Some(allowed.id)).await;
        let other = bench.folder("other", None).await;
        let outside = bench.file("plan outside", Some(other.id)).await.id.to_string();
        let root = bench.file("plan root", None).await.id.to_string();
        let inside = bench.file("plan inside", Some(inner.id)).await.id.to_string();
        let agent = bench.scoped(&[allowed.id]);
        let into = |folder: Option<FolderId>| FilePatch {
            folder_id: Some(folder.map(|id| id.to_string())),
            ..FilePatch::default()
        };

        assert!(bench.files.get(&agent, &inside).await.is_ok());
        for id in [&outside, &root] {
            assert_out_of_scope(bench.files.get(&agent, id).await);
            assert_out_of_scope(bench.files.delete(&agent, id).await);
            assert_out_of_scope(bench.files.update(&agent, id, FilePatch::default()).await);
            assert_out_of_scope(bench.files.update(&agent, id, into(Some(allowed.id))).await);
        }
        assert_not_found(bench.files.get(&agent, &missing_file()).await, "file");

        assert_out_of_scope(bench.files.create(&agent, draft("x", None)).await);
        assert_out_of_scope(bench.files.create(&agent, draft("x", Some(other.id))).await);
        assert_not_found(bench.files.create(&agent, draft("x", Some(missing_folder()))).await, "folder");
        bench.files.create(&agent, draft("mine", Some(allowed.id))).await.unwrap();
        assert_out_of_scope(bench.files.update(&agent, &inside, into(Some(other.id))).await);
        assert_out_of_scope(bench.files.update(&agent, &inside, into(None)).await);
        bench.files.update(&agent, &inside, into(Some(allowed.id))).await.unwrap();

        assert_eq!(bench.names(&agent, None).await, ["mine", "plan inside"], "{}", bench.engine());
        assert_eq!(bench.names(&agent, in_folder(None, false)).await, Vec::<String>::new());
        assert_eq!(bench.names(&agent, in_folder(None, true)).await, ["mine", "plan inside"]);
        assert_eq!(bench.names(&agent, in_folder(Some(allowed.id), false)).await, ["mine", "plan inside"]);
        let list = bench.files.list(&agent, in_folder(Some(other.id), true), first_page()).await;
        assert_out_of_scope(list);
        let (found, total) = bench.files.search(&agent, "plan", None, 0, Vec::new()).await.unwrap();
        assert_eq!((found.len(), total), (1, 1));
        assert_out_of_scope(
            bench.files.search(&agent, "plan", Some(&other.id.to_string()), 0, Vec::new()).await,
        );
        let nobody = bench.scoped(&[]);
        assert_eq!(bench.names(&nobody, None).await, Vec::<String>::new());
        bench.files.delete(&agent, &inside).await.unwrap();
    }
}
