use cairn_proto::domain::SortOrder;

use super::memory_rules::{codes, of_file};
use super::*;
use crate::databases::{self, Databases};
use crate::memories::{MemberDraft, MemoryPatch, Resolved};
use crate::model::{DatabaseQuery, MemberKind};
use crate::records::{self, Records};

#[tokio::test]
async fn a_database_member_stands_for_its_records() {
    for bench in benches().await {
        let memories = bench.memories();
        let databases = Databases::new(bench.context.clone());
        let records = Records::new(bench.context.clone());
        let folder = bench.folder("f", None).await;
        let asked = databases::DatabaseDraft {
            name: "Tasks".into(),
            folder_id: Some(folder.id.to_string()),
            description: None,
            icon: None,
            new_id: None,
        };
        let database = databases.create(&bench.caller, asked).await.unwrap().item;
        let (id, name) = (database.id.to_string(), database.properties[0].id.to_string());
        for title in ["b", "a", "c"] {
            let values = serde_json::json!({name.as_str(): title}).to_string();
            let asked = records::RecordDraft { values, ..records::RecordDraft::default() };
            records.create(&bench.caller, &id, asked).await.unwrap();
        }
        let of_database = |query: Option<DatabaseQuery>| MemberDraft {
            kind: Some(MemberKind::Database),
            database_id: Some(id.clone()),
            query,
            ..MemberDraft::default()
        };
        let sorted = DatabaseQuery {
            sort_field_id: name.clone(),
            sort_direction: Some(SortOrder::Desc),
            limit: 2,
            ..DatabaseQuery::default()
        };
        let members = vec![of_database(Some(sorted.clone())), of_database(None)];
        let memory = bench.memory("m", members).await;
        assert_eq!(memory.members[0].query, Some(sorted));
        let resolved = bench.resolved(&bench.caller, &memory).await;
        assert_eq!(resolved.memory.members, memory.members, "{}", bench.engine());
        let found = |resolved: &Resolved, place: usize| -> Vec<String> {
            let records = resolved.records.get(&memory.members[place].id).cloned().unwrap_or_default();
            records.into_iter().map(|entry| format!("{} {}", entry.path, entry.content.trim())).collect()
        };
        assert_eq!(found(&resolved, 0), ["/f/Tasks/c Name: c", "/f/Tasks/b Name: b"]);
        assert_eq!((found(&resolved, 1).len(), codes(&resolved)), (3, vec!["budget_exhausted"]));

        let elsewhere = bench.folder("elsewhere", None).await;
        let outside = bench.scoped(&[elsewhere.id]);
        let hidden = bench.resolved(&outside, &memory).await;
        assert_eq!((codes(&hidden), hidden.records.len()), (vec!["out_of_scope"; 2], 0));
        let adding = memories.add_members(&outside, "m", vec![of_database(None)]);
        assert_out_of_scope(adding.await);
        let inside = bench.resolved(&bench.scoped(&[folder.id]), &memory).await;
        assert_eq!(found(&inside, 1).len(), 3);

        let wrong = DatabaseQuery { sort_field_id: missing_file(), limit: 201, ..DatabaseQuery::default() };
        let refused = memories.add_members(&bench.caller, "m", vec![of_database(Some(wrong))]).await;
        let mut places = violations(refused).into_iter().map(|(path, _)| path).collect::<Vec<_>>();
        places.sort();
        assert_eq!(places, ["members[0].databaseQuery.limit", "members[0].databaseQuery.sortFieldId"]);
        let on_file = MemberDraft { query: Some(DatabaseQuery::default()), ..of_file(missing_file()) };
        let refused = memories.add_members(&bench.caller, "m", vec![on_file]).await;
        assert_eq!(violations(refused), pairs(&[("members[0].databaseQuery", "invalid")]));

        let public = MemoryPatch { is_public: Some(true), ..MemoryPatch::default() };
        memories.update(&bench.caller, "m", public).await.unwrap();
        let seen = memories.resolve_public(&memory.id.to_string(), None).await.unwrap();
        assert_eq!((codes(&seen), seen.records.len()), (vec!["database_excluded"; 2], 0));
        databases.delete(&bench.caller, &id).await.unwrap();
        assert_eq!(codes(&bench.resolved(&bench.caller, &memory).await), ["target_deleted"; 2]);
    }
}

/// A record in a memory is the document that a search cites: fields with the names of options, and its body.
#[tokio::test]
async fn a_record_in_a_memory_is_whole() {
    use super::tables::Table;
    use crate::documents::DocumentRef;
    for bench in benches().await {
        let (inside, outside) = (bench.folder("in", None).await, bench.folder("out", None).await);
        let (near, far) =
            (bench.file("near", Some(inside.id)).await, bench.file("far", Some(outside.id)).await);
        let table = Table::new(&bench, Some(inside.id)).await;
        let mut made = Vec::new();
        for (name, body) in [("one", Some(near.id)), ("two", Some(far.id)), ("three", None)] {
            let values = serde_json::json!({"Name": name, "Status": "Todo", "Tags": ["Doing", "Todo"]});
            let draft = records::RecordDraft {
                values: values.to_string(),
                content_file_id: body.map(|id| Some(id.to_string())),
                allow_names: true,
                ..records::RecordDraft::default()
            };
            let record = table.records.create(&bench.caller, &table.id(), draft).await.unwrap().item.record;
            made.push(record.id.to_string());
        }
        let member = MemberDraft {
            kind: Some(MemberKind::Database),
            database_id: Some(table.id()),
            ..MemberDraft::default()
        };
        let memory = bench.memory("m", vec![member]).await;
        let read = async |caller: &Caller| {
            let resolved = bench.resolved(caller, &memory).await;
            resolved.records[&memory.members[0].id].clone()
        };
        let fields = "Status: Todo\nTags: Doing, Todo\n";
        let text = |name: &str, body: &str| format!("Name: {name}\n{fields}{body}");
        let contents = |entries: &[crate::memories::RecordEntry]| {
            entries.iter().map(|entry| entry.content.clone()).collect::<Vec<_>>()
        };
        let whole = read(&bench.caller).await;
        let expected = [text("one", "\ncontent of near"), text("two", "\ncontent of far"), text("three", "")];
        assert_eq!(contents(&whole), expected, "{}", bench.engine());
        let refs = [DocumentRef { kind: Some(cairn_chassis::feed::Kind::Record), id: made[0].clone() }];
        let indexed = bench.documents.confirm(&bench.caller, &refs).await.unwrap();
        assert_eq!(whole[0].content_hash, indexed[0].content_hash);
        let scoped = read(&bench.scoped(&[inside.id])).await;
        assert_eq!(contents(&scoped), [text("one", "\ncontent of near"), text("two", ""), text("three", "")]);

        // What does not fit has a note.
        for number in 0..4 {
            let file =
                files::FileDraft { content: "x".repeat(5_000_000), ..draft(&number.to_string(), None) };
            let file = bench.files.create(&bench.caller, file).await.unwrap().item;
            let body = records::RecordDraft {
                content_file_id: Some(Some(file.id.to_string())),
                ..records::RecordDraft::default()
            };
            table.records.create(&bench.caller, &table.id(), body).await.unwrap();
        }
        let resolved = bench.resolved(&bench.caller, &memory).await;
        assert_eq!(codes(&resolved), ["budget_exhausted"]);
        let entries = &resolved.records[&memory.members[0].id];
        assert_eq!((entries.len(), entries[3].title.as_str()), (6, "Untitled"), "{}", bench.engine());
    }
}
