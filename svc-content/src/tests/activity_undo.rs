//! What an undo reverts, and what it skips.

use cairn_chassis::feed::Kind;
use serde_json::json;

use super::activity_rules::token;
use super::memory_rules::of_file;
use super::tables::{Table, named};
use super::*;
use crate::activity::{Selection, Undos};
use crate::databases;
use crate::files::FilePatch;
use crate::memories::{Memories, MemoryDraft, MemoryPatch};
use crate::records::RecordDraft;

impl Bench {
    fn undos(&self) -> Undos {
        Undos::new(self.context.clone())
    }

    /// Undoes everything by a principal; returns the codes of the skipped items.
    async fn undo_all_of(&self, who: &Caller) -> Vec<(String, &'static str)> {
        let selection = Selection { principal_id: Some(who.principal.id.clone()), ..Selection::default() };
        self.undo(selection).await
    }

    async fn undo(&self, selection: Selection) -> Vec<(String, &'static str)> {
        let person = token(self, "the keeper");
        let plan = self.undos().plan(&person, selection.clone()).await.unwrap();
        let undone = self.undos().execute(&person, selection.clone()).await.unwrap();
        assert!(!undone.has_more);
        let planned: Vec<_> = plan.steps.iter().map(|step| step.what.clone()).collect();
        let done: Vec<_> = undone.steps.iter().map(|step| step.what.clone()).collect();
        assert_eq!(done, planned, "{}: {:?}", self.engine(), undone.left_alone);
        let again = self.undos().execute(&person, selection).await.unwrap();
        assert!(again.steps.is_empty() && again.position == 0, "{}: {again:?}", self.engine());
        undone.left_alone.into_iter().map(|one| (one.what.name, one.code)).collect()
    }

    async fn text(&self, id: &str) -> (String, String) {
        let (file, content) = self.files.get(&self.caller, id).await.unwrap();
        (file.path, content)
    }
}

fn text(content: &str) -> FilePatch {
    FilePatch { content: Some(content.to_owned()), ..FilePatch::default() }
}

#[tokio::test]
async fn what_an_agent_did_to_files_and_folders_goes_back_and_edits_of_people_stay() {
    for bench in benches().await {
        let agent = token(&bench, "agent");
        let (home, other) = (bench.folder("home", None).await, bench.folder("other", None).await);
        let kept = bench.file("kept.md", Some(home.id)).await.id.to_string();
        let edited = bench.file("edited.md", Some(home.id)).await.id.to_string();
        let gone = bench.file("gone.md", Some(other.id)).await.id.to_string();
        bench.files.update(&agent, &kept, text("by the agent")).await.unwrap();
        let many = FilePatch {
            name: Some("renamed.md".into()),
            folder_id: Some(Some(other.id.to_string())),
            tags: Some(vec!["t".into()]),
            description: Some(Some("d".into())),
            ..text("again")
        };
        bench.files.update(&agent, &kept, many).await.unwrap();
        bench.files.update(&agent, &edited, text("by the agent")).await.unwrap();
        bench.files.update(&bench.caller, &edited, text("by a person")).await.unwrap();
        bench.files.delete(&agent, &gone).await.unwrap();
        bench.folders.delete(&agent, &other.id.to_string()).await.unwrap();
        let made = bench.folders.create(&agent, folder_draft("made", None)).await.unwrap().item;
        let new =
            bench.files.create(&agent, draft("new.md", Some(made.id))).await.unwrap().item.id.to_string();
        let shared = bench.folders.create(&agent, folder_draft("shared", None)).await.unwrap().item;
        bench.file("of a person.md", Some(shared.id)).await;

        let mut left = bench.undo_all_of(&agent).await;
        left.sort();
        let expected = [("edited.md".to_owned(), "edited_since"), ("shared".to_owned(), "not_empty")];
        assert_eq!(left, expected, "{}", bench.engine());
        let kept_now = bench.files.get(&bench.caller, &kept).await.unwrap().0;
        assert_eq!(bench.text(&kept).await, ("/home/kept.md".into(), "content of kept.md".into()));
        assert_eq!((kept_now.tags, kept_now.description), (vec![], None));
        assert_eq!(bench.text(&edited).await.1, "by a person");
        assert_eq!(bench.text(&gone).await, ("/other/gone.md".into(), "content of gone.md".into()));
        assert_not_found(bench.files.get(&bench.caller, &new).await, "file");
        assert_not_found(bench.folders.get(&bench.caller, &made.id.to_string()).await, "folder");
    }
}

#[tokio::test]
async fn an_undo_can_be_undone() {
    for bench in benches().await {
        let agent = token(&bench, "agent");
        let file = bench.file("a.md", None).await.id.to_string();
        bench.files.update(&agent, &file, text("one")).await.unwrap();
        bench.files.delete(&agent, &file).await.unwrap();
        let new = bench.files.create(&agent, draft("new.md", None)).await.unwrap().item.id.to_string();
        bench.undo_all_of(&agent).await;
        assert_eq!(bench.text(&file).await.1, "content of a.md", "{}", bench.engine());
        let keeper = token(&bench, "the keeper");
        let own: Vec<String> = bench
            .activity()
            .await
            .into_iter()
            .filter(|one| one.author.id == keeper.principal.id)
            .map(|one| one.id.to_string())
            .collect();
        assert!(!own.is_empty());
        let selection = Selection { entries: own, ..Selection::default() };
        bench.undos().execute(&bench.caller, selection).await.unwrap();
        assert_not_found(bench.files.get(&bench.caller, &file).await, "file");
        assert_eq!(bench.text(&new).await.1, "content of new.md", "{}", bench.engine());
        // Again: entries that were undone and done again are the agent's.
        bench.undo_all_of(&agent).await;
        assert_eq!(bench.text(&file).await.1, "content of a.md", "{}", bench.engine());
        assert_not_found(bench.files.get(&bench.caller, &new).await, "file");
    }
}

#[tokio::test]
async fn one_entry_goes_back_as_long_as_it_is_the_last() {
    for bench in benches().await {
        let file = bench.file("a.md", None).await.id.to_string();
        bench.files.update(&bench.caller, &file, text("one")).await.unwrap();
        bench.files.update(&bench.caller, &file, text("two")).await.unwrap();
        let all = bench.activity().await;
        let of =
            |place: usize| Selection { entries: vec![all[place].id.to_string()], ..Selection::default() };
        assert_eq!(bench.undo(of(1)).await, [("a.md".to_owned(), "edited_since")], "{}", bench.engine());
        assert!(bench.undo(of(0)).await.is_empty());
        assert_eq!(bench.text(&file).await.1, "one");
        assert!(bench.undo(of(1)).await.is_empty(), "what came after it is undone");
        assert_eq!(bench.text(&file).await.1, "content of a.md");
    }
}

#[tokio::test]
async fn records_databases_and_memories_go_back_too() {
    for bench in benches().await {
        let agent = Caller { may_publish: true, ..token(&bench, "agent") };
        let table = Table::new(&bench, None).await;
        let kept = table.make(json!({"Name": "Kept", "Points": 1})).await.record.id.to_string();
        let gone = table.make(json!({"Name": "Gone"})).await.record.id.to_string();
        let values = |values: serde_json::Value| RecordDraft {
            values: values.to_string(),
            allow_names: true,
            ..RecordDraft::default()
        };
        let records = &table.records;
        records
            .update(&agent, &table.id(), &kept, values(json!({"Points": 2, "Status": "Todo"})))
            .await
            .unwrap();
        records.delete(&agent, &table.id(), &gone).await.unwrap();
        let new =
            records.create(&agent, &table.id(), values(json!({"Name": "New"}))).await.unwrap().item.record.id;
        let patch =
            databases::DatabasePatch { name: Some("Renamed".into()), ..databases::DatabasePatch::default() };
        table.databases.update(&agent, &table.id(), patch).await.unwrap();
        let made = table.databases.create(&agent, named("Made", None)).await.unwrap().item.id.to_string();
        records.create(&agent, &made, values(json!({"Name": "In it"}))).await.unwrap();

        let memories = Memories::new(bench.context.clone());
        let (one, two) = (bench.file("1", None).await.id, bench.file("2", None).await.id);
        let memory = bench.memory("M", vec![of_file(one), of_file(two)]).await;
        let id = memory.id.to_string();
        let patch = MemoryPatch {
            name: Some("N".into()),
            use_when: Some(Some("always".into())),
            add: vec![of_file(one)],
            remove: vec![memory.members[1].id.to_string()],
            ..MemoryPatch::default()
        };
        memories.update(&agent, &id, patch).await.unwrap();
        let draft = MemoryDraft { name: "New".into(), ..MemoryDraft::default() };
        let new_memory = memories.create(&agent, draft).await.unwrap().item.id.to_string();

        assert_eq!(bench.undo_all_of(&agent).await, [], "{}", bench.engine());
        let now = records.get(&bench.caller, &table.id(), &kept).await.unwrap().record.values;
        assert_eq!((now.len(), &now[&table.field("Points")]), (2, &json!(1)), "{now:?}");
        records.get(&bench.caller, &table.id(), &gone).await.unwrap();
        assert_not_found(records.get(&bench.caller, &table.id(), &new.to_string()).await, "record");
        assert_eq!(table.databases.get(&bench.caller, &table.id()).await.unwrap().name, "Tasks");
        assert_not_found(table.databases.get(&bench.caller, &made).await, "database");
        let back = memories.list(&bench.caller, first_page()).await.unwrap().items;
        assert!(back.iter().all(|one| one.id.to_string() != new_memory));
        let back = back.into_iter().find(|one| one.id == memory.id).unwrap();
        let targets: Vec<_> = back.members.iter().map(|member| member.target.id().0).collect();
        assert_eq!(
            (back.name.as_str(), back.use_when, targets),
            ("M", None, vec![one.0, two.0]),
            "{}",
            bench.engine()
        );
    }
}

#[tokio::test]
async fn what_cannot_come_back_is_named() {
    for bench in benches().await {
        let agent = token(&bench, "agent");
        let file = bench.file("a.md", None).await.id.to_string();
        bench.files.delete(&agent, &file).await.unwrap();
        bench.trash().remove(&bench.caller, Kind::File, &file).await.unwrap();
        let table = Table::new(&bench, None).await;
        let field = crate::databases::properties::PropertyDraft {
            name: "F".into(),
            kind: Some(crate::model::PropertyType::Text),
            config: None,
        };
        table.databases.create_property(&agent, &table.id(), field).await.unwrap();
        let mut left = bench.undo_all_of(&agent).await;
        left.sort();
        let expected = [("Tasks".to_owned(), "fields_kept"), ("a.md".to_owned(), "deleted_for_good")];
        assert_eq!(left, expected, "{}", bench.engine());
    }
}

#[tokio::test]
async fn an_undo_says_what_it_is_of() {
    for bench in benches().await {
        let undos = bench.undos();
        let none = undos.plan(&bench.caller, Selection::default()).await;
        assert_eq!(violations(none), pairs(&[("principal", "required")]));
        let odd = Selection { entries: vec!["x".into(), "1.2.3".into()], ..Selection::default() };
        let expected = pairs(&[("entries[0]", "not_found"), ("entries[1]", "not_found")]);
        assert_eq!(violations(undos.plan(&bench.caller, odd).await), expected, "{}", bench.engine());
        let folder = bench.folder("f", None).await;
        let mine =
            Selection { principal_id: Some(bench.caller.principal.id.clone()), ..Selection::default() };
        assert_out_of_scope(undos.execute(&bench.scoped(&[folder.id]), mine).await);
        // Entries of another workspace do not exist.
        let entries = vec![bench.activity().await[0].id.to_string()];
        let foreign = undos.plan(&caller(2), Selection { entries, ..Selection::default() }).await;
        assert_eq!(violations(foreign), pairs(&[("entries[0]", "not_found")]));
    }
}
