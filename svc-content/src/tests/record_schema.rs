//! What becomes of records when properties and options go, and what a folder scope hides of references, on every engine.

use cairn_chassis::on_db;
use cairn_proto::domain::SortOrder;
use serde_json::{Value, json};

use super::tables::{Table, tree};
use super::*;
use crate::databases::properties::{OptionDraft, PropertyPatch, SettingsDraft};
use crate::databases::views::{SortDraft, ViewDraft};
use crate::model::{PropertyType, Record};
use crate::records::RecordListRequest;

fn options(names: &[&str]) -> PropertyPatch {
    let option = |name: &&str| OptionDraft { name: (*name).to_owned(), ..OptionDraft::default() };
    let config =
        SettingsDraft { options: Some(names.iter().map(option).collect()), ..SettingsDraft::default() };
    PropertyPatch { config: Some(config), ..PropertyPatch::default() }
}

#[tokio::test]
async fn every_record_that_loses_a_value_has_a_version() {
    for bench in benches().await {
        let table = Table::new(&bench, None).await;
        let (caller, id, status) = (&bench.caller, table.id(), table.field("Status"));
        let mut made = Vec::new();
        // More than one batch.
        for number in 0..510_u32 {
            let state = if number % 2 == 0 { "Todo" } else { "Doing" };
            made.push(table.make(json!({"Name": number.to_string(), "Status": state})).await.record);
        }
        let trashed = made[0].id.to_string();
        table.records.delete(caller, &id, &trashed).await.unwrap();
        let patch = options(&["DOING", "Finished"]);
        table.databases.update_property(caller, &id, &status, patch).await.unwrap();
        assert_eq!(bench.wrong().await, [], "{}", bench.engine());

        let versions_of = async |record: &Record| {
            let page = table.records.versions(caller, &id, &record.id.to_string(), first_page()).await;
            page.unwrap().items.into_iter().map(|one| one.values.get(&status).cloned()).collect::<Vec<_>>()
        };
        assert_eq!(versions_of(&made[508]).await, [None, Some(json!("Todo"))], "{}", bench.engine());
        assert_eq!(versions_of(&made[509]).await, [Some(json!("DOING"))], "{}", bench.engine());
        let back = table.records.restore(caller, &id, &trashed).await.unwrap().item.record;
        assert_eq!((back.version, back.values.get(&status)), (2, None));
        let empty = json!({"fieldId": "Status", "operator": "is_empty"});
        let ask = RecordListRequest { filters: vec![tree(&empty)], limit: 1, ..RecordListRequest::default() };
        assert_eq!(table.titles(ask).await.1, 255);

        table.databases.delete_property(caller, &id, &status).await.unwrap();
        assert_eq!(bench.wrong().await, [], "{}", bench.engine());
        let page =
            table.records.versions(caller, &id, &made[509].id.to_string(), first_page()).await.unwrap();
        let values: Vec<_> = page.items.iter().map(|one| one.values.get("Status").cloned()).collect();
        assert_eq!(values, [None, Some(json!("DOING"))], "{}", bench.engine());
        let page = table.records.versions(caller, &id, &trashed, first_page()).await.unwrap();
        let values: Vec<_> = page.items.iter().map(|one| one.values.get("Status").cloned()).collect();
        assert_eq!(values, [None, Some(json!("Todo"))], "{}", bench.engine());

        table.databases.delete(caller, &id).await.unwrap();
        table.databases.purge(caller, &id).await.unwrap();
        for sql in ["SELECT COUNT(*) FROM former_properties", "SELECT COUNT(*) FROM former_options"] {
            let count: i64 =
                on_db!(bench.context.db, |c| sqlx::query_scalar(sql).fetch_one(c).await).unwrap();
            assert_eq!(count, 0, "{sql} {}", bench.engine());
        }
    }
}

#[tokio::test]
async fn a_database_keeps_a_view_and_a_default() {
    for bench in benches().await {
        let mut table = Table::new(&bench, None).await;
        let (caller, id) = (bench.caller.clone(), table.id());
        let first = table.database.views[0].id.to_string();
        let refused = table.databases.delete_view(&caller, &id, &first).await;
        assert_eq!(violations(refused), pairs(&[("viewId", "last")]));
        let draft = ViewDraft { name: "Other".into(), ..ViewDraft::default() };
        table.databases.create_view(&caller, &id, draft).await.unwrap();
        table.databases.delete_view(&caller, &id, &first).await.unwrap();
        table.reload().await;
        let views: Vec<_> =
            table.database.views.iter().map(|view| (view.name.as_str(), view.is_default)).collect();
        assert_eq!(views, [("Other", true)]);
        assert_not_found(table.databases.delete_view(&caller, &id, &first).await, "view");
        assert_eq!(bench.wrong().await, []);
    }
}

/// Records of a database inside a folder that name things inside and outside of it.
struct Hidden {
    table: Table,
    scoped: Caller,
    near: String,
    far: String,
    far_record: String,
    made: Vec<String>,
}

impl Hidden {
    async fn new(bench: &Bench) -> Self {
        let (inside, outside) = (bench.folder("in", None).await, bench.folder("out", None).await);
        let near = bench.file("near", Some(inside.id)).await.id.to_string();
        let far = bench.file("far", Some(outside.id)).await.id.to_string();
        let (other, mut table) =
            (Table::new(bench, Some(outside.id)).await, Table::new(bench, Some(inside.id)).await);
        let far_record = other.make(json!({"Name": "far"})).await.record.id.to_string();
        let several = SettingsDraft { multiple: Some(true), ..SettingsDraft::default() };
        table.add("Files", PropertyType::FileReference, several).await;
        let relation = |id| SettingsDraft { relation_database_id: Some(id), ..SettingsDraft::default() };
        table.add("Theirs", PropertyType::Relation, relation(other.id())).await;
        let own = table.id();
        table.add("Ours", PropertyType::Relation, relation(own)).await;
        let mut made = Vec::new();
        for values in [
            json!({"Name": "A", "File": near, "Theirs": far_record}),
            json!({"Name": "B", "File": far}),
            json!({"Name": "C"}),
            json!({"Name": "D", "Files": [far, near]}),
        ] {
            made.push(table.make(values).await.record.id.to_string());
        }
        table.change(&made[2], json!({"Ours": [made[0]]})).await.unwrap();
        Self { table, scoped: bench.scoped(&[inside.id]), near, far, far_record, made }
    }

    async fn found(&self, caller: &Caller, ask: RecordListRequest) -> String {
        let ask = RecordListRequest { allow_names: true, ..ask };
        let page = self.table.records.list(caller, &self.table.id(), ask).await.unwrap();
        let titles: Vec<_> = page.records.iter().map(|shown| shown.title.as_str()).collect();
        assert_eq!(page.total, titles.len() as u64);
        titles.concat()
    }

    async fn filtered(&self, caller: &Caller, value: &Value) -> String {
        self.found(caller, RecordListRequest { filters: vec![tree(value)], ..RecordListRequest::default() })
            .await
    }
}

#[tokio::test]
async fn filters_and_sorts_tell_nothing_of_what_is_hidden() {
    for bench in benches().await {
        let hidden = Hidden::new(&bench).await;
        let is = |field: &str, operator: &str, value: Value| json!({"fieldId": field, "operator": operator, "value": value});
        let (near, far) = (json!(hidden.near), json!(hidden.far));
        for (filter, whole, scoped) in [
            (is("File", "is_not_empty", Value::Null), "AB", "A"),
            (is("File", "is_empty", Value::Null), "CD", "BCD"),
            (is("File", "equals", far.clone()), "B", ""),
            (is("File", "not_equals", far.clone()), "ACD", "ABCD"),
            (is("File", "not_equals", near.clone()), "BCD", "BCD"),
            (is("File", "in", json!([near, far])), "AB", "A"),
            (is("File", "contains", far.clone()), "B", ""),
            (is("Files", "is_not_empty", Value::Null), "D", "D"),
            (is("Files", "equals", far.clone()), "D", ""),
            (is("Files", "equals", near.clone()), "D", "D"),
            (is("Theirs", "is_not_empty", Value::Null), "A", ""),
            (is("Theirs", "is_empty", Value::Null), "BCD", "ABCD"),
            (is("Theirs", "equals", json!(hidden.far_record)), "A", ""),
            (is("Ours", "is_not_empty", Value::Null), "C", "C"),
            (is("Ours", "equals", json!(hidden.made[0])), "C", "C"),
            (
                json!({"or": [is("File", "is_not_empty", Value::Null), is("Name", "equals", json!("B"))]}),
                "AB",
                "AB",
            ),
            (
                json!({"and": [is("File", "is_not_empty", Value::Null), is("Name", "equals", json!("B"))]}),
                "B",
                "",
            ),
        ] {
            let engine = bench.engine();
            assert_eq!(hidden.filtered(&bench.caller, &filter).await, whole, "{engine} {filter}");
            assert_eq!(hidden.filtered(&hidden.scoped, &filter).await, scoped, "{engine} {filter}");
        }
        for order in SortOrder::ALL {
            for field in ["File", "Files", "Theirs"] {
                let sort = SortDraft { field_id: field.into(), order };
                let ask = RecordListRequest { sorts: vec![sort], ..RecordListRequest::default() };
                assert_eq!(hidden.found(&hidden.scoped, ask).await, "ABCD", "{field} {order}");
            }
        }
        for search in [&hidden.far, &hidden.far_record] {
            let ask = RecordListRequest { search: search.clone(), ..RecordListRequest::default() };
            assert_eq!(hidden.found(&hidden.scoped, ask).await, "");
        }
    }
}

#[tokio::test]
async fn versions_hide_what_records_hide() {
    for bench in benches().await {
        let hidden = Hidden::new(&bench).await;
        let (rules, id, record) = (&hidden.table.records, hidden.table.id(), &hidden.made[1]);
        let refused = rules.restore_version(&hidden.scoped, &id, record, 1).await.unwrap_err();
        assert!(matches!(refused, Error::OutOfScope(_)), "{refused}");
        assert!(!refused.to_string().contains(&hidden.far), "{refused}");
        let file = hidden.table.field("File");
        hidden.table.databases.delete_property(&bench.caller, &id, &file).await.unwrap();
        let values = async |caller: &Caller| {
            let page = rules.versions(caller, &id, record, first_page()).await.unwrap();
            page.items.into_iter().map(|version| version.values.get("File").cloned()).collect::<Vec<_>>()
        };
        assert_eq!(values(&bench.caller).await, [None, Some(json!(hidden.far))]);
        assert_eq!(values(&hidden.scoped).await, [None, None]);
    }
}
