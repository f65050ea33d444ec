//! Files by their tags, and the restrictions of a search.

use std::collections::BTreeSet;

use cairn_chassis::feed::Kind;
use serde_json::json;

use super::tables::Table;
use super::*;
use crate::documents::DocumentFilter;
use crate::files::{FilePatch, FileSelection};

impl Bench {
    async fn tagged(&self, name: &str, folder: Option<FolderId>, tags: &[&str]) -> File {
        let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
        let draft = files::FileDraft { tags, ..draft(name, folder) };
        self.files.create(&self.caller, draft).await.unwrap().item
    }

    async fn with_tags(&self, caller: &Caller, folder: Option<InFolder>, tags: &[&str]) -> Vec<String> {
        let wanted = FileSelection { folder, tags: owned(tags) };
        let page = self.files.list(caller, wanted, first_page()).await.unwrap();
        assert_eq!(page.total, page.items.len() as u64);
        page.items.into_iter().map(|file| file.name).collect()
    }

    async fn selected(&self, caller: &Caller, narrowing: DocumentFilter) -> BTreeSet<String> {
        let found = self.documents.select(caller, narrowing).await.unwrap();
        found.into_iter().map(|id| id.to_string()).collect()
    }
}

fn owned(tags: &[&str]) -> Vec<String> {
    tags.iter().map(|tag| (*tag).to_owned()).collect()
}

fn ids<T: ToString>(ids: &[T]) -> BTreeSet<String> {
    ids.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn files_are_listed_by_all_of_their_tags() {
    for bench in benches().await {
        let folder = bench.folder("f", None).await;
        let below = bench.folder("g", Some(folder.id)).await;
        bench.tagged("1", None, &["a", "b"]).await;
        bench.tagged("2", Some(folder.id), &["b", "a", "c \"quoted\" %"]).await;
        bench.tagged("3", Some(below.id), &["a"]).await;
        bench.tagged("4", Some(below.id), &[]).await;
        let gone = bench.tagged("5", None, &["a"]).await;
        bench.files.delete(&bench.caller, &gone.id.to_string()).await.unwrap();
        let all = &bench.caller;
        for (tags, expected) in [
            (&["a"][..], &["1", "2", "3"][..]),
            (&["b", "a"], &["1", "2"]),
            (&["a", "c \"quoted\" %"], &["2"]),
            (&["A"], &[]),
            (&["a", "x"], &[]),
        ] {
            assert_eq!(bench.with_tags(all, None, tags).await, expected, "{} {tags:?}", bench.engine());
        }
        assert_eq!(bench.with_tags(all, in_folder(None, false), &["a"]).await, ["1"]);
        assert_eq!(bench.with_tags(all, in_folder(Some(folder.id), false), &["a"]).await, ["2"]);
        assert_eq!(bench.with_tags(all, in_folder(Some(folder.id), true), &["a"]).await, ["2", "3"]);
        let scoped = bench.scoped(&[below.id]);
        assert_eq!(bench.with_tags(&scoped, None, &["a"]).await, ["3"]);
        let wanted = || FileSelection { folder: None, tags: owned(&["a"]) };
        let first = bench.files.list(all, wanted(), PageRequest::new(PAGES, 2, "").unwrap()).await.unwrap();
        assert_eq!((first.items.len(), first.total), (2, 3));
        let rest =
            bench.files.list(all, wanted(), PageRequest::new(PAGES, 2, &first.next).unwrap()).await.unwrap();
        assert_eq!((rest.items[0].name.as_str(), rest.total), ("3", 3));

        let found = bench.files.search(all, "2", None, 0, owned(&["a"])).await.unwrap();
        assert_eq!((found.0.len(), found.1), (1, 1));
        let found = bench.files.search(all, "4", None, 0, owned(&["a"])).await.unwrap();
        assert_eq!((found.0.len(), found.1), (0, 0));
        let folder = below.id.to_string();
        let found = bench.files.search(all, "3", Some(&folder), 0, owned(&["a"])).await.unwrap();
        assert_eq!(found.1, 1);
        let odd = FileSelection { folder: None, tags: owned(&[" "]) };
        let refused = bench.files.list(all, odd, first_page()).await;
        assert_eq!(violations(refused), pairs(&[("tags[0]", "required")]));
    }
}

#[tokio::test]
async fn a_search_is_narrowed_to_what_meets_all() {
    for bench in benches().await {
        let folder = bench.folder("f", None).await;
        let below = bench.folder("g", Some(folder.id)).await;
        let root = bench.tagged("1", None, &["a"]).await;
        let deep = bench.tagged("2", Some(below.id), &["a", "b"]).await;
        let table = Table::new(&bench, Some(below.id)).await;
        let record = table.make(json!({"Name": "r"})).await.record;
        let memory = bench.memory("m", vec![]).await;
        let all = &bench.caller;
        let everything =
            ids(&[root.id.to_string(), deep.id.to_string(), record.id.to_string(), memory.id.to_string()]);
        assert_eq!(bench.selected(all, DocumentFilter::default()).await, everything, "{}", bench.engine());
        let in_folder =
            |id: FolderId| DocumentFilter { folder_id: Some(id.to_string()), ..DocumentFilter::default() };
        let inside = ids(&[deep.id.to_string(), record.id.to_string()]);
        assert_eq!(bench.selected(all, in_folder(folder.id)).await, inside);
        let tagged = |tags: &[&str]| DocumentFilter { tags: owned(tags), ..DocumentFilter::default() };
        assert_eq!(bench.selected(all, tagged(&["a"])).await, ids(&[root.id, deep.id]));
        assert_eq!(bench.selected(all, tagged(&["b", "a"])).await, ids(&[deep.id]));
        let of_kind = |kind| DocumentFilter { kinds: vec![kind], ..DocumentFilter::default() };
        assert_eq!(bench.selected(all, of_kind(Kind::Record)).await, ids(&[record.id]));
        assert_eq!(bench.selected(all, of_kind(Kind::Memory)).await, ids(&[memory.id]));
        assert_eq!(bench.selected(all, of_kind(Kind::Ingested)).await, ids::<FileId>(&[]));
        let scoped = bench.scoped(&[below.id]);
        let covered = ids(&[deep.id.to_string(), record.id.to_string(), memory.id.to_string()]);
        assert_eq!(bench.selected(&scoped, DocumentFilter::default()).await, covered);
        assert_out_of_scope(bench.documents.select(&scoped, in_folder(folder.id)).await);
        assert_not_found(bench.documents.select(all, in_folder(missing_folder())).await, "folder");

        let patch = FilePatch { name: Some("new".to_owned()), ..FilePatch::default() };
        let changed = bench.files.update(all, &root.id.to_string(), patch).await.unwrap().item;
        let after = DocumentFilter { updated_after: Some(memory.updated_at), ..DocumentFilter::default() };
        assert_eq!(bench.selected(all, after).await, ids(&[root.id]));
        let before = DocumentFilter { updated_before: Some(changed.updated_at), ..DocumentFilter::default() };
        assert!(!bench.selected(all, before).await.contains(&root.id.to_string()));
    }
}
