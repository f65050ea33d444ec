use cairn_chassis::clock::ManualClock;
use cairn_chassis::clock::Timestamp;
use cairn_chassis::feed::{Kind, Op};
use cairn_chassis::jobs::Lease;
use cairn_chassis::on_db;
use std::time::Duration;

use super::*;
use crate::retention;
use crate::trash::{Trash, TrashEntry};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl Bench {
    pub(super) fn trash(&self) -> Trash {
        Trash::new(self.context.clone(), None)
    }

    pub(super) async fn in_trash(&self) -> Vec<TrashEntry> {
        self.trash().list(&self.caller, None, first_page()).await.unwrap().items
    }

    pub(super) async fn count_of(&self, sql: &'static str) -> i64 {
        on_db!(self.context.db, |c| sqlx::query_scalar(sql).fetch_one(c).await).unwrap()
    }

    async fn trash_file(&self, file: &File) {
        self.files.delete(&self.caller, &file.id.to_string()).await.unwrap();
    }

    async fn trash_folder(&self, folder: &Folder) {
        self.folders.delete(&self.caller, &folder.id.to_string()).await.unwrap();
    }

    /// Restores an item and returns its new path.
    async fn restore(&self, kind: Kind, id: impl ToString) -> String {
        self.trash().restore(&self.caller, kind, &id.to_string()).await.unwrap().path
    }
}

#[tokio::test]
async fn a_file_comes_back_where_it_was() {
    for bench in benches().await {
        let folder = bench.folder("a", None).await;
        let file = bench.file("1.md", Some(folder.id)).await;
        bench.trash_file(&file).await;
        let [listed] = bench.in_trash().await.try_into().unwrap();
        let deletion = listed.deletion;
        assert_eq!((deletion.kind, deletion.item_id.as_str()), (Kind::File, file.id.to_string().as_str()));
        assert_eq!((deletion.name.as_str(), deletion.path.as_str()), ("1.md", "/a/1.md"));
        assert_eq!((deletion.parent_id, deletion.items, listed.expires_at), (Some(folder.id), 1, None));

        let before = bench.changes().await.len() as u64;
        let back = bench.trash().restore(&bench.caller, Kind::File, &file.id.to_string()).await.unwrap();
        assert_eq!((back.path.as_str(), back.items, back.position), ("/a/1.md", 1, before + 1));
        let entries = bench.entries_after(before).await;
        assert_eq!(entries, [Entry::upsert(Kind::File, file.id)], "{}", bench.engine());
        let (read, content) = bench.files.get(&bench.caller, &file.id.to_string()).await.unwrap();
        assert_eq!((read, content.as_str()), (file.clone(), "content of 1.md"));
        assert!(bench.in_trash().await.is_empty());
        let again = bench.trash().restore(&bench.caller, Kind::File, &file.id.to_string()).await;
        assert_not_found(again, "item in trash");
    }
}

#[tokio::test]
async fn a_folder_comes_back_with_exactly_what_its_deletion_took() {
    for bench in benches().await {
        let a = bench.folder("a", None).await;
        let b = bench.folder("b", Some(a.id)).await;
        let sub = bench.folder("sub", Some(b.id)).await;
        let one = bench.file("1", Some(b.id)).await;
        bench.file("2", Some(a.id)).await;
        let earlier = bench.file("earlier", Some(b.id)).await;
        bench.file("in sub", Some(sub.id)).await;
        bench.trash_file(&earlier).await;
        bench.trash_folder(&sub).await;
        bench.trash_folder(&a).await;
        let listed = bench.in_trash().await;
        let told: Vec<_> =
            listed.iter().map(|one| (one.deletion.path.as_str(), one.deletion.items)).collect();
        assert_eq!(told, [("/a", 4), ("/a/b/sub", 2), ("/a/b/earlier", 1)], "{}", bench.engine());

        // Items that were deleted with a container have no entry of their own.
        for (kind, id) in [(Kind::Folder, b.id.to_string()), (Kind::File, one.id.to_string())] {
            let refused = bench.trash().restore(&bench.caller, kind, &id).await.unwrap_err();
            assert!(matches!(refused, Error::WentAlong { with: "folder", .. }), "{refused:?}");
            let refused = bench.trash().remove(&bench.caller, kind, &id).await.unwrap_err();
            assert!(matches!(refused, Error::WentAlong { with: "folder", .. }), "{refused:?}");
        }
        let before = bench.changes().await.len() as u64;
        assert_eq!(bench.restore(Kind::Folder, a.id).await, "/a");
        let entries = bench.entries_after(before).await;
        assert_eq!(entries.len(), 4);
        assert!(entries.iter().all(|entry| entry.op == Op::Upsert));
        assert_eq!(bench.folder_paths(&bench.caller, None).await, ["/a", "/a/b"]);
        assert_eq!(bench.names(&bench.caller, None).await, ["1", "2"]);
        assert_eq!(bench.restore(Kind::File, earlier.id).await, "/a/b/earlier");
        assert_eq!(bench.restore(Kind::Folder, sub.id).await, "/a/b/sub");
        assert_eq!(bench.names(&bench.caller, None).await, ["1", "2", "earlier", "in sub"]);
    }
}

#[tokio::test]
async fn what_has_no_folder_any_more_comes_back_into_the_root() {
    for bench in benches().await {
        let a = bench.folder("a", None).await;
        let inner = bench.folder("inner", Some(a.id)).await;
        let one = bench.file("1", Some(a.id)).await;
        let two = bench.file("2", Some(a.id)).await;
        bench.file("3", Some(inner.id)).await;
        bench.trash_file(&one).await;
        bench.trash_file(&two).await;
        bench.trash_folder(&inner).await;
        bench.trash_folder(&a).await;
        assert_eq!(bench.restore(Kind::File, one.id).await, "/1", "its folder is in trash");
        bench.trash().remove(&bench.caller, Kind::Folder, &a.id.to_string()).await.unwrap();
        assert_eq!(bench.restore(Kind::File, two.id).await, "/2", "its folder is gone");
        assert_eq!(bench.restore(Kind::Folder, inner.id).await, "/inner");
        let page = bench.files.list(&bench.caller, None, first_page()).await.unwrap();
        let paths: Vec<_> = page.items.into_iter().map(|file| file.path).collect();
        assert_eq!(paths, ["/1", "/2", "/inner/3"], "{}", bench.engine());
        assert!(bench.in_trash().await.is_empty());
    }
}

#[tokio::test]
async fn a_folder_that_would_be_too_deep_comes_back_into_the_root() {
    for bench in benches().await {
        let holder = bench.folder("holder", None).await;
        let top = bench.folder("top", Some(holder.id)).await;
        bench.folder("below", Some(top.id)).await;
        bench.trash_folder(&top).await;
        let mut deep = None;
        for level in 0..98 {
            deep = Some(bench.folder(&format!("{level}"), deep).await.id);
        }
        bench.folders.update(&bench.caller, &holder.id.to_string(), move_to(deep)).await.unwrap();
        assert_eq!(bench.restore(Kind::Folder, top.id).await, "/top", "{}", bench.engine());
    }
}

#[tokio::test]
async fn removed_for_good_is_gone_with_its_bodies() {
    for bench in benches().await {
        let a = bench.folder("a", None).await;
        let b = bench.folder("b", Some(a.id)).await;
        let shared = |folder| files::FileDraft { content: "shared".into(), ..draft("shared", folder) };
        bench.files.create(&bench.caller, shared(Some(b.id))).await.unwrap();
        let kept = bench.files.create(&bench.caller, shared(None)).await.unwrap().item;
        let own = bench.file("own", Some(a.id)).await;
        let earlier = bench.file("earlier", Some(b.id)).await;
        bench.trash_file(&earlier).await;
        bench.trash_folder(&a).await;
        assert_eq!(bench.count_of("SELECT COUNT(*) FROM bodies").await, 3);

        let before = bench.changes().await.len() as u64;
        let position = bench.trash().remove(&bench.caller, Kind::Folder, &a.id.to_string()).await.unwrap();
        assert_eq!(position, before + 4, "two folders and two files");
        assert!(bench.entries_after(before).await.iter().all(|entry| entry.op == Op::Delete));
        assert_eq!(bench.count_of("SELECT COUNT(*) FROM folders").await, 0);
        assert_eq!(bench.count_of("SELECT COUNT(*) FROM files").await, 2, "{}", bench.engine());
        assert_eq!(bench.count_of("SELECT COUNT(*) FROM bodies").await, 2, "one of them is shared");
        let (_, content) = bench.files.get(&bench.caller, &kept.id.to_string()).await.unwrap();
        assert_eq!(content, "shared");
        assert_not_found(
            bench.trash().restore(&bench.caller, Kind::Folder, &a.id.to_string()).await,
            "item in trash",
        );
        assert_not_found(
            bench.trash().remove(&bench.caller, Kind::File, &own.id.to_string()).await,
            "item in trash",
        );
        bench.trash().remove(&bench.caller, Kind::File, &earlier.id.to_string()).await.unwrap();
        assert_eq!(bench.count_of("SELECT COUNT(*) FROM bodies").await, 1);
        assert_eq!(bench.count_of("SELECT COUNT(*) FROM trash").await, 0);
    }
}

#[tokio::test]
async fn the_trash_is_listed_in_pages_from_the_latest() {
    for bench in benches().await {
        for number in 0..7 {
            let file = bench.file(&number.to_string(), None).await;
            bench.trash_file(&file).await;
        }
        let mut names = Vec::new();
        let mut token = String::new();
        loop {
            let page = bench
                .trash()
                .list(&bench.caller, None, PageRequest::new(PAGES, 3, &token).unwrap())
                .await
                .unwrap();
            assert_eq!(page.total, 7);
            names.extend(page.items.into_iter().map(|one| one.deletion.name));
            token = page.next;
            if token.is_empty() {
                break;
            }
        }
        assert_eq!(names, ["6", "5", "4", "3", "2", "1", "0"], "{}", bench.engine());
        let foreign = bench
            .files
            .list(&bench.caller, None, PageRequest::new(PAGES, 1, "").unwrap())
            .await
            .unwrap()
            .next;
        assert_eq!(foreign, "");
        let stranger = caller(77);
        assert!(bench.trash().list(&stranger, None, first_page()).await.unwrap().items.is_empty());
    }
}

#[tokio::test]
async fn the_trash_is_for_its_own_workspace_and_the_whole_of_it() {
    for bench in benches().await {
        let folder = bench.folder("a", None).await;
        let file = bench.file("1", Some(folder.id)).await;
        bench.trash_file(&file).await;
        let id = file.id.to_string();
        let other = bench.folder("other", None).await;
        let agent = bench.scoped(&[other.id]);
        assert_out_of_scope(bench.trash().list(&bench.scoped(&[folder.id]), None, first_page()).await);
        assert_out_of_scope(bench.trash().restore(&agent, Kind::File, &id).await);
        assert_out_of_scope(bench.trash().remove(&agent, Kind::File, &id).await);
        let stranger = caller(77);
        assert_not_found(bench.trash().restore(&stranger, Kind::File, &id).await, "item in trash");
        assert_not_found(bench.trash().remove(&stranger, Kind::File, &id).await, "item in trash");
        for (kind, odd) in [(Kind::Folder, id.as_str()), (Kind::File, "x"), (Kind::File, "a\0b")] {
            assert_not_found(bench.trash().restore(&bench.caller, kind, odd).await, "item in trash");
        }
        assert_eq!(bench.in_trash().await.len(), 1, "{}", bench.engine());
    }
}

#[tokio::test]
async fn what_is_too_old_is_removed_by_who_holds_the_lease() {
    for mut bench in benches().await {
        let clock = Arc::new(ManualClock::new(Timestamp::from_seconds(1_800_000_000)));
        bench.context = bench.by_clock(Arc::<ManualClock>::clone(&clock));
        bench.files = Files::new(bench.context.clone());
        let old = bench.file("old", None).await;
        bench.trash_file(&old).await;
        clock.advance(DAY);
        let young = bench.file("young", None).await;
        bench.trash_file(&young).await;

        let keeping = bench.trash();
        assert_eq!(keeping.sweep().await.unwrap(), 0);
        let trash = Trash::new(bench.context.clone(), Some(2 * DAY));
        let lease = |name| {
            let shared: Arc<dyn Clock> = Arc::<ManualClock>::clone(&clock);
            Lease::new(bench.context.db.clone(), shared, &bench.context.ids, name, DAY)
        };
        let (mine, theirs) = (lease("test"), lease("test"));
        clock.advance(DAY);
        assert_eq!(retention::sweep(&trash, &mine).await.unwrap(), 0, "two days are not over yet");
        let listed = trash.list(&bench.caller, None, first_page()).await.unwrap().items;
        assert_eq!(listed[1].expires_at, Some(clock.now()));
        clock.advance(Duration::from_micros(1));
        assert!(theirs.claim().await.unwrap());
        assert_eq!(retention::sweep(&trash, &mine).await.unwrap(), 0, "another process sweeps");
        theirs.release().await.unwrap();
        let before = bench.changes().await.len() as u64;
        assert_eq!(retention::sweep(&trash, &mine).await.unwrap(), 1, "{}", bench.engine());
        assert_eq!(bench.entries_after(before).await, [Entry::delete(Kind::File, old.id)]);
        let left: Vec<_> = bench.in_trash().await.into_iter().map(|one| one.deletion.name).collect();
        assert_eq!(left, ["young"]);
        assert!(theirs.claim().await.unwrap(), "a sweep that is done gives its lease back");
    }
}

/// A concurrent restore, removal and deletion of the container: in every order, nothing live is in something deleted,
/// and the item is either restored or removed.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_restore_races_with_all_that_could_break_it() {
    for bench in benches().await {
        for round in 0..12 {
            let top = bench.folder(&format!("top{round}"), None).await;
            let file = bench.file(&format!("file{round}"), Some(top.id)).await;
            bench.trash_file(&file).await;
            let (trash, caller, id) = (bench.trash(), bench.caller.clone(), file.id.to_string());
            let (folders, top_id) = (bench.folders.clone(), top.id.to_string());
            let files = bench.files.clone();
            let (one, two, three, four) = (caller.clone(), caller.clone(), caller.clone(), caller.clone());
            let (other_trash, other_id) = (trash.clone(), id.clone());
            // The same body is added again while it may be deleted.
            let same = files::FileDraft { content: format!("content of file{round}"), ..draft("same", None) };
            let (restored, removed, deleted, created) = tokio::join!(
                tokio::spawn(async move { trash.restore(&one, Kind::File, &id).await }),
                tokio::spawn(async move { other_trash.remove(&two, Kind::File, &other_id).await }),
                tokio::spawn(async move { folders.delete(&three, &top_id).await }),
                tokio::spawn(async move { files.create(&four, same).await }),
            );
            deleted.unwrap().unwrap();
            let created = created.unwrap().unwrap().item;
            bench.files.get(&caller, &created.id.to_string()).await.unwrap();
            let (restored, removed) = (restored.unwrap(), removed.unwrap());
            assert!(restored.is_ok() != removed.is_ok(), "{} {restored:?} {removed:?}", bench.engine());
        }
        let live_in_dead = bench
            .count_of(
                "SELECT COUNT(*) FROM files f JOIN folders d ON d.id = f.folder_id \
                 WHERE f.deleted_at IS NULL AND d.deleted_at IS NOT NULL",
            )
            .await;
        assert_eq!(live_in_dead, 0, "{}", bench.engine());
    }
}
