//! The activity that writes insert, and who may read it.

use cairn_chassis::clock::{ManualClock, Timestamp};
use cairn_chassis::feed::Kind;
use cairn_chassis::identity::{Principal, PrincipalKind};
use cairn_chassis::jobs::Lease;
use serde_json::json;
use std::time::Duration;

use super::memory_rules::of_file;
use super::tables::Table;
use super::*;
use crate::activity::{Activities, ActivityPage, ActivityRequest};
use crate::batch::{Batches, Write};
use crate::databases::views::ViewDraft;
use crate::memories::{Memories, MemoryPatch};
use crate::model::ActivityEntry;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl Bench {
    pub(super) fn activities(&self) -> Activities {
        Activities::new(self.context.clone())
    }

    pub(super) async fn asked(&self, request: ActivityRequest) -> ActivityPage {
        self.activities().list(&self.caller, request).await.unwrap()
    }

    /// All entries, the newest first.
    pub(super) async fn activity(&self) -> Vec<ActivityEntry> {
        self.asked(ActivityRequest { page_size: 200, ..ActivityRequest::default() }).await.entries
    }

    /// The entries since the last call, the oldest first, in words.
    async fn in_words(&self, seen: &mut usize) -> Vec<String> {
        let all = self.activity().await;
        let words = |entry: &ActivityEntry| {
            let what = &entry.what;
            let changed = what.changed().join(",");
            let versions = (what.version_before.is_some(), what.version_after.is_some());
            format!("{} {:?} {} {changed} {versions:?}", what.action(), what.kind, what.path)
        };
        let fresh = all.len() - *seen;
        *seen = all.len();
        all.iter().take(fresh).rev().map(words).collect()
    }
}

/// A token with that name for the same workspace.
pub(super) fn token(bench: &Bench, name: &str) -> Caller {
    let (id, name) = (format!("id of {name}"), name.to_owned());
    Caller { principal: Principal { kind: PrincipalKind::Token, id, name }, ..bench.caller.clone() }
}

fn renamed(name: &str) -> files::FilePatch {
    files::FilePatch { name: Some(name.to_owned()), ..files::FilePatch::default() }
}

#[tokio::test]
async fn every_change_of_the_tree_is_an_entry() {
    for bench in benches().await {
        let (caller, mut seen) = (&bench.caller, 0);
        let folder = bench.folder("f", None).await;
        let file = bench.file("a.md", Some(folder.id)).await;
        let id = file.id.to_string();
        bench.files.update(caller, &id, renamed("b.md")).await.unwrap();
        bench.files.update(caller, &id, renamed("b.md")).await.unwrap();
        let tagged = files::FilePatch { tags: Some(vec!["t".into()]), ..files::FilePatch::default() };
        bench.files.update(caller, &id, tagged).await.unwrap();
        let moved = files::FilePatch { folder_id: Some(None), ..files::FilePatch::default() };
        bench.files.update(caller, &id, moved).await.unwrap();
        let both = files::FilePatch { content: Some("new".into()), ..renamed("c.md") };
        bench.files.update(caller, &id, both).await.unwrap();
        bench.folders.update(caller, &folder.id.to_string(), move_to(None)).await.unwrap();
        bench.files.delete(caller, &id).await.unwrap();
        bench.trash().restore(caller, Kind::File, &id).await.unwrap();
        bench.folders.delete(caller, &folder.id.to_string()).await.unwrap();
        bench.trash().remove(caller, Kind::Folder, &folder.id.to_string()).await.unwrap();
        let told = bench.in_words(&mut seen).await;
        let expected = [
            "created Folder /f  (false, false)",
            "created File /f/a.md  (false, true)",
            "renamed File /f/b.md name (true, true)",
            "tagged File /f/b.md tags (true, true)",
            "moved File /b.md folder (true, true)",
            "updated File /c.md content,name (true, true)",
            "deleted File /c.md  (false, false)",
            "restored File /c.md  (false, false)",
            "deleted Folder /f  (false, false)",
            "deleted_permanently Folder /f  (false, false)",
        ];
        assert_eq!(told, expected, "{}", bench.engine());
        let entries = bench.activity().await;
        let rename = entries.iter().find(|entry| entry.what.former_name() == Some("a.md")).unwrap();
        assert_eq!((rename.what.version_before, rename.what.version_after), (Some(1), Some(2)));
    }
}

#[tokio::test]
async fn every_change_of_databases_and_memories_is_an_entry() {
    for bench in benches().await {
        let (caller, mut seen) = (bench.caller.clone(), 0);
        let table = Table::new(&bench, None).await;
        bench.in_words(&mut seen).await;
        let record = table.make(json!({"Name": "R"})).await.record.id.to_string();
        table.change(&record, json!({"Points": 1})).await.unwrap();
        table
            .databases
            .create_view(&caller, &table.id(), ViewDraft { name: "V".into(), ..ViewDraft::default() })
            .await
            .unwrap();
        table.records.delete(&caller, &table.id(), &record).await.unwrap();
        table.records.restore(&caller, &table.id(), &record).await.unwrap();
        table.records.delete(&caller, &table.id(), &record).await.unwrap();
        table.records.purge(&caller, &table.id(), &record).await.unwrap();
        table.databases.delete(&caller, &table.id()).await.unwrap();
        table.databases.restore(&caller, &table.id()).await.unwrap();
        let expected = [
            "created Record /Tasks/R  (false, true)",
            "updated Record /Tasks/R values (true, true)",
            "updated Database /Tasks views (true, true)",
            "deleted Record /Tasks/R  (false, false)",
            "restored Record /Tasks/R  (false, false)",
            "deleted Record /Tasks/R  (false, false)",
            "deleted_permanently Record /Tasks/R  (false, false)",
            "deleted Database /Tasks  (false, false)",
            "restored Database /Tasks  (false, true)",
        ];
        assert_eq!(bench.in_words(&mut seen).await, expected, "{}", bench.engine());

        let file = bench.file("a.md", None).await;
        bench.in_words(&mut seen).await;
        let memories = Memories::new(bench.context.clone());
        let memory = bench.memory("M", vec![]).await.id.to_string();
        let added = memories.add_members(&caller, &memory, vec![of_file(file.id)]).await.unwrap().item;
        memories.remove_member(&caller, &memory, &added[0].id.to_string()).await.unwrap();
        let patch =
            MemoryPatch { name: Some("N".into()), add: vec![of_file(file.id)], ..MemoryPatch::default() };
        memories.update(&caller, &memory, patch).await.unwrap();
        memories.delete(&caller, &memory).await.unwrap();
        bench.trash().restore(&caller, Kind::Memory, &memory).await.unwrap();
        let expected = [
            "created Memory /memories/m  (false, true)",
            "updated Memory /memories/m members (true, true)",
            "updated Memory /memories/m members (true, true)",
            "updated Memory /memories/m name,members (true, true)",
            "deleted Memory /memories/m  (false, false)",
            "restored Memory /memories/m  (false, false)",
        ];
        assert_eq!(bench.in_words(&mut seen).await, expected, "{}", bench.engine());
    }
}

#[tokio::test]
async fn what_was_refused_is_no_entry_and_a_batch_is_one_for_each_item() {
    for bench in benches().await {
        let batches = Batches::new(bench.context.clone());
        let file = bench.file("a.md", None).await;
        let missing = batches.write(&bench.caller, [Write::DeleteFile(missing_file())]).await;
        assert!(missing.is_err());
        assert_eq!(bench.activity().await.len(), 1, "{}", bench.engine());
        let writes = [
            Write::UpdateFile(file.id.to_string(), renamed("b.md")),
            Write::UpdateFile(file.id.to_string(), renamed("c.md")),
            Write::CreateFile(draft("d.md", None)),
        ];
        batches.write(&bench.caller, writes).await.unwrap();
        let all = bench.activity().await;
        let names: Vec<_> =
            all.iter().map(|entry| (entry.what.name.as_str(), entry.what.former_name())).collect();
        assert_eq!(names, [("d.md", None), ("c.md", Some("a.md")), ("a.md", None)], "{}", bench.engine());
        assert_eq!((all[0].id.position, all[1].id.position), (4, 4), "those of one write stand together");
    }
}

#[tokio::test]
async fn the_list_is_narrowed_and_goes_on() {
    for bench in benches().await {
        let agent = token(&bench, "agent");
        let folder = bench.folder("f", None).await;
        let below = bench.folder("g", Some(folder.id)).await;
        bench.files.create(&agent, draft("1", Some(below.id))).await.unwrap();
        bench.file("2", None).await;
        bench.files.create(&agent, draft("3", None)).await.unwrap();
        let names = |page: &ActivityPage| -> Vec<String> {
            page.entries.iter().map(|entry| entry.what.name.clone()).collect()
        };
        let of =
            |principal: &str| ActivityRequest { principal_id: Some(principal.into()), ..Default::default() };
        assert_eq!(names(&bench.asked(of("id of agent")).await), ["3", "1"], "{}", bench.engine());
        assert!(bench.asked(of("nobody\0")).await.entries.is_empty());
        let files = ActivityRequest { kind: Some(Kind::File), page_size: 2, ..Default::default() };
        let first = bench.asked(files.clone()).await;
        assert_eq!(names(&first), ["3", "2"]);
        let second = bench.asked(ActivityRequest { page_token: first.next, ..files }).await;
        assert_eq!((names(&second), second.next.as_str()), (vec!["1".to_owned()], ""));
        let inside = ActivityRequest { folder_id: Some(folder.id.to_string()), ..Default::default() };
        assert_eq!(names(&bench.asked(inside).await), ["1", "g", "f"]);
        let all = bench.activity().await;
        let between =
            ActivityRequest { since: Some(all[3].id.at), until: Some(all[1].id.at), ..Default::default() };
        let expected: Vec<_> =
            all.iter().filter(|one| one.id.at >= all[3].id.at && one.id.at < all[1].id.at).cloned().collect();
        assert_eq!(bench.asked(between).await.entries, expected);
        let odd = bench
            .activities()
            .list(&bench.caller, ActivityRequest { page_token: "x".into(), ..Default::default() })
            .await;
        assert_eq!(violations(odd), pairs(&[("pageToken", "invalid")]));
        let actors: Vec<_> = bench
            .activities()
            .actors(&bench.caller)
            .await
            .unwrap()
            .into_iter()
            .map(|one| (one.kind, one.name))
            .collect();
        assert_eq!(actors, [("service".to_owned(), String::new()), ("token".to_owned(), "agent".to_owned())]);
    }
}

#[tokio::test]
async fn folder_tokens_and_other_workspaces_are_told_nothing() {
    for bench in benches().await {
        let folder = bench.folder("f", None).await;
        let scoped = bench.scoped(&[folder.id]);
        assert_out_of_scope(bench.activities().list(&scoped, ActivityRequest::default()).await);
        assert_out_of_scope(bench.activities().actors(&scoped).await);
        let stranger = caller(2);
        let theirs = bench.activities().list(&stranger, ActivityRequest::default()).await.unwrap();
        assert!(theirs.entries.is_empty() && bench.activities().actors(&stranger).await.unwrap().is_empty());
        let inside = ActivityRequest { folder_id: Some(folder.id.to_string()), ..Default::default() };
        assert_not_found(bench.activities().list(&stranger, inside).await, "folder");
    }
}

#[tokio::test]
async fn old_entries_are_forgotten() {
    for bench in benches().await {
        bench.file("old", None).await;
        let clock = Arc::new(ManualClock::new(bench.context.clock.now()));
        clock.advance(DAY * 179);
        let context = bench.by_clock(Arc::<ManualClock>::clone(&clock));
        let lease = Lease::new(context.db.clone(), Arc::clone(&context.clock), &context.ids, "l", DAY);
        let activities = Activities::new(context.clone());
        assert_eq!(activities.sweep(&lease).await.unwrap(), 0, "{}", bench.engine());
        Files::new(context).create(&bench.caller, draft("young", None)).await.unwrap();
        clock.advance(DAY * 2);
        assert_eq!(activities.sweep(&lease).await.unwrap(), 1, "{}", bench.engine());
        let left: Vec<_> = bench.activity().await.into_iter().map(|entry| entry.what.name).collect();
        assert_eq!(left, ["young"]);
        let far = ActivityRequest { since: Some(Timestamp::from_micros(i64::MAX)), ..Default::default() };
        assert!(bench.asked(far).await.entries.is_empty());
    }
}
