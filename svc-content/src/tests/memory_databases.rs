use super::memory_rules::{codes, of_file};
use super::*;
use crate::databases::{self, Databases};
use crate::memories::{DatabaseQuery, MemberDraft, MemberKind, Patch, Resolved};
use crate::records::{self, Records};

#[tokio::test]
async fn a_database_member_stands_for_its_records() {
    for bench in benches().await {
        let memories = bench.memories();
        let databases = Databases::new(bench.context.clone());
        let records = Records::new(bench.context.clone());
        let folder = bench.folder("f", None).await;
        let asked = databases::Draft {
            name: "Tasks".into(),
            folder_id: Some(folder.id.to_string()),
            description: None,
            icon: None,
        };
        let database = databases.create(&bench.caller, asked).await.unwrap().item;
        let (id, name) = (database.id.to_string(), database.properties[0].id.to_string());
        for title in ["b", "a", "c"] {
            let values = serde_json::json!({name.as_str(): title}).to_string();
            let asked = records::Draft { values, ..records::Draft::default() };
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
            sort_direction: "desc".into(),
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

        let public = Patch { is_public: Some(true), ..Patch::default() };
        memories.update(&bench.caller, "m", public).await.unwrap();
        let seen = memories.resolve_public(&memory.id.to_string(), None).await.unwrap();
        assert_eq!((codes(&seen), seen.records.len()), (vec!["database_excluded"; 2], 0));
        databases.delete(&bench.caller, &id).await.unwrap();
        assert_eq!(codes(&bench.resolved(&bench.caller, &memory).await), ["target_deleted"; 2]);
    }
}
