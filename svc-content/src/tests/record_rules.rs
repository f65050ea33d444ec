//! The rules of databases and records, on every engine.

use cairn_proto::domain::{Condition, Filter, Operator, SortOrder};
use serde_json::{Value, json};

use super::backlink_rules::links;
use super::tables::{Table, named, tree};
use super::*;
use crate::databases::properties::{OptionDraft, PropertyPatch, SettingsDraft};
use crate::databases::views::{SortDraft, ViewDraft};
use crate::databases::{self, Databases};
use crate::model::{Author, Record};
use crate::records::{self, RecordListRequest};

#[tokio::test]
async fn a_database_is_born_with_a_name_and_a_table() {
    for bench in benches().await {
        let databases = Databases::new(bench.context.clone());
        let made = databases.create(&bench.caller, named("People", None)).await.unwrap();
        assert_eq!(databases.get(&bench.caller, &made.item.id.to_string()).await.unwrap(), made.item);
        let (property, view) = (&made.item.properties[0], &made.item.views[0]);
        assert!(property.is_primary && property.name == "Name" && view.is_default);
        let id = made.item.id.to_string();
        let gone = databases.delete_property(&bench.caller, &id, &property.id.to_string()).await;
        assert_eq!(violations(gone), pairs(&[("fieldId", "primary")]));
        assert_not_found(databases.get(&caller(2), &id).await, "database");
        let bad = databases::DatabaseDraft { folder_id: Some("x".into()), ..named("a/b", None) };
        let refused = databases.create(&bench.caller, bad).await;
        assert_eq!(violations(refused), pairs(&[("name", "invalid"), ("folderId", "invalid")]));
    }
}

#[tokio::test]
async fn trash_takes_and_gives_back_a_database_with_its_records() {
    for bench in benches().await {
        let folder = bench.folder("f", None).await;
        let table = Table::new(&bench, Some(folder.id)).await;
        table.fill().await;
        let before = bench.changes().await.len() as u64;
        table.databases.delete(&bench.caller, &table.id()).await.unwrap();
        assert_eq!(bench.entries_after(before).await.len(), 5);
        assert_not_found(table.databases.get(&bench.caller, &table.id()).await, "database");
        assert_not_found(
            table.records.list(&bench.caller, &table.id(), RecordListRequest::default()).await,
            "database",
        );
        let trash = table.databases.list_trashed(&bench.caller, first_page()).await.unwrap();
        assert!(trash.items.len() == 1 && trash.items[0].deleted_at.is_some());
        bench.folders.delete(&bench.caller, &folder.id.to_string()).await.unwrap();
        let back = table.databases.restore(&bench.caller, &table.id()).await.unwrap().item;
        assert_eq!((back.folder_id, back.record_count), (None, 4));
        assert_eq!(table.titles(RecordListRequest::default()).await.1, 4);
        assert_not_found(table.databases.purge(&bench.caller, &table.id()).await, "database");
        table.databases.delete(&bench.caller, &table.id()).await.unwrap();
        table.databases.purge(&bench.caller, &table.id()).await.unwrap();
        assert_not_found(table.databases.restore(&bench.caller, &table.id()).await, "database");
    }
}

#[tokio::test]
async fn a_folder_takes_its_databases_along() {
    use cairn_chassis::feed::Kind;

    use crate::trash::Trash;
    for bench in benches().await {
        let folder = bench.folder("f", None).await;
        let table = Table::new(&bench, Some(folder.id)).await;
        table.fill().await;
        let trash = Trash::new(bench.context.clone(), None);
        let delete = async || bench.folders.delete(&bench.caller, &folder.id.to_string()).await.unwrap();
        delete().await;
        assert_not_found(table.databases.get(&bench.caller, &table.id()).await, "database");
        trash.restore(&bench.caller, Kind::Folder, &folder.id.to_string()).await.unwrap();
        let back = table.databases.get(&bench.caller, &table.id()).await.unwrap();
        assert_eq!((back.folder_id, back.record_count), (Some(folder.id), 4));
        assert_eq!(table.sorted(&[("Points", "asc")]).await, "CBAD");
        delete().await;
        trash.remove(&bench.caller, Kind::Folder, &folder.id.to_string()).await.unwrap();
        assert_not_found(table.databases.restore(&bench.caller, &table.id()).await, "database");
    }
}

#[tokio::test]
async fn every_wrong_value_is_named_at_once() {
    for bench in benches().await {
        let table = Table::new(&bench, None).await;
        let field = |name: &str| table.field(name);
        let values = json!({
            field("Name"): 5, field("Points"): "1", field("Done"): "yes", field("Due"): "2026-02-30",
            field("Link"): "ftp://x", field("File"): missing_file(), field("Status"): "Never",
            field("Tags"): ["Todo", "x"], "nonsense": 1,
        });
        let draft = records::RecordDraft {
            values: values.to_string(),
            content_file_id: Some(Some(missing_file())),
            ..records::RecordDraft::default()
        };
        let refused = table.records.create(&bench.caller, &table.id(), draft).await;
        let mut found = violations(refused);
        found.sort();
        let at = |name: &str| format!("values.{}", table.field(name));
        let mut expected = vec![
            (at("Name"), "wrong_type".to_owned()),
            (at("Points"), "wrong_type".to_owned()),
            (at("Done"), "wrong_type".to_owned()),
            (at("Due"), "invalid_date".to_owned()),
            (at("Link"), "invalid_url".to_owned()),
            (at("File"), "not_found".to_owned()),
            (at("Status"), "unknown_option".to_owned()),
            (format!("{}[1]", at("Tags")), "unknown_option".to_owned()),
            ("values.nonsense".to_owned(), "unknown_property".to_owned()),
            ("contentFileId".to_owned(), "not_found".to_owned()),
        ];
        expected.sort();
        assert_eq!(found, expected);
        let text = |length: usize| json!({"Name": "x".repeat(length)});
        table.make(text(100_000)).await;
        let long = table.make(text(1)).await.record.id.to_string();
        assert_eq!(violations(table.change(&long, text(100_001)).await).len(), 1);
    }
}

#[tokio::test]
async fn an_update_merges_and_keeps_versions() {
    for bench in benches().await {
        let table = Table::new(&bench, None).await;
        let made = table.make(json!({"Name": "one", "Points": 1, "Status": "Todo"})).await;
        let id = made.record.id.to_string();
        let after = table.change(&id, json!({"Points": 2, "Status": null})).await.unwrap();
        assert_eq!((after.record.version, after.title.as_str()), (2, "one"));
        assert_eq!(after.record.values[&table.field("Points")], 2);
        assert!(!after.record.values.contains_key(&table.field("Status")));
        assert_eq!(table.change(&id, json!({"Points": 2})).await.unwrap().record.version, 2);
        let stale = records::RecordDraft {
            values: json!({"Points": 3}).to_string(),
            allow_names: true,
            if_version: vec![1],
            ..records::RecordDraft::default()
        };
        let refused = table.records.update(&bench.caller, &table.id(), &id, stale).await;
        assert!(matches!(refused, Err(Error::RecordConflict { actual: 2, .. })), "{refused:?}");
        let page = table.records.versions(&bench.caller, &table.id(), &id, first_page()).await.unwrap();
        let numbers: Vec<u64> = page.items.iter().map(|version| version.version).collect();
        assert_eq!(numbers, [2, 1]);
        assert_eq!(page.items[1].values, made.record.values);
        let back = table.records.restore_version(&bench.caller, &table.id(), &id, 1).await.unwrap().item;
        assert_eq!((back.record.version, &back.record.values), (3, &made.record.values));
        table.records.delete(&bench.caller, &table.id(), &id).await.unwrap();
        assert_eq!(table.titles(RecordListRequest::default()).await, (vec![], 0));
        table.records.restore(&bench.caller, &table.id(), &id).await.unwrap();
        assert_eq!(
            table.filtered(json!({"fieldId": "Status", "operator": "equals", "value": "Todo"})).await,
            "one"
        );
        table.records.delete(&bench.caller, &table.id(), &id).await.unwrap();
        table.records.purge(&bench.caller, &table.id(), &id).await.unwrap();
        assert_not_found(table.records.restore(&bench.caller, &table.id(), &id).await, "record");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_writers_lose_no_property() {
    for bench in benches().await {
        let table = Table::new(&bench, None).await;
        let id = table.make(json!({"Name": "one"})).await.record.id.to_string();
        let write = async |name: &str| {
            for number in 0..15 {
                let value = if name == "Points" { json!(number) } else { json!(format!("n{number}")) };
                table.change(&id, json!({name: value})).await.unwrap();
            }
        };
        tokio::join!(write("Points"), write("Name"));
        let record = table.records.get(&bench.caller, &table.id(), &id).await.unwrap();
        assert_eq!((record.title.as_str(), record.record.version), ("n14", 31));
        assert_eq!(record.record.values[&table.field("Points")], 14);
    }
}

#[tokio::test]
async fn filters_and_sorts_know_types() {
    for bench in benches().await {
        let table = Table::new(&bench, None).await;
        table.fill().await;
        let is = |field: &str, operator: &str, value: Value| json!({"fieldId": field, "operator": operator, "value": value});
        for (tree, expected) in [
            (json!({}), "ABCD"),
            (is("Points", "gt", json!(9)), "A"),
            (is("Points", "gte", json!("9")), "AB"),
            (is("Points", "lt", json!(0)), "C"),
            (is("Points", "lte", json!(9)), "BC"),
            (is("Points", "in", json!([10, 9])), "AB"),
            (is("Points", "not_equals", json!(10)), "BCD"),
            (is("Name", "equals", json!("a")), "A"),
            (is("Link", "contains", json!("X_Y")), "D"),
            (is("Link", "contains", json!("x%y")), ""),
            (is("Done", "equals", json!(true)), "A"),
            (is("Done", "is_empty", Value::Null), "BD"),
            (is("Due", "equals", json!("2026-03-02")), "B"),
            (is("Due", "before", json!("2026-03-02")), "A"),
            (is("Due", "after", json!("2026-03-01")), "B"),
            (is("Due", "gte", json!("2026-03-01")), "AB"),
            (is("Status", "in", json!(["Todo", "Doing"])), "BC"),
            (is("Tags", "contains", json!("Todo")), "B"),
            (is("Tags", "is_not_empty", Value::Null), "BC"),
            (json!({"or": [is("Points", "equals", json!(10)), is("Name", "equals", json!("D"))]}), "AD"),
            (
                json!({"and": [is("Points", "gt", json!(0)), {"or": [is("Done", "equals", json!(true)), is("Tags", "contains", json!("Doing"))]}]}),
                "AB",
            ),
            (json!({"or": []}), ""),
        ] {
            assert_eq!(table.filtered(tree.clone()).await, expected, "{} {tree}", bench.engine());
        }
        for (sorts, expected) in [
            (&[("Points", "asc")][..], "CBAD"),
            (&[("Points", "desc")], "ABCD"),
            (&[("Status", "asc")], "BCAD"),
            (&[("Due", "desc")], "BACD"),
            (&[("Done", "asc"), ("Points", "asc")], "CABD"),
            (&[("Name", "desc")], "DCBA"),
        ] {
            assert_eq!(table.sorted(sorts).await, expected, "{} {sorts:?}", bench.engine());
        }
        for offset in 0..5 {
            let sorts = vec![SortDraft { field_id: "Done".into(), order: SortOrder::Asc }];
            let ask = RecordListRequest { sorts, limit: 2, offset, ..RecordListRequest::default() };
            let whole = ["C", "A", "B", "D"];
            let from = usize::try_from(offset).unwrap();
            let expected: Vec<_> = whole.iter().skip(from).take(2).map(ToString::to_string).collect();
            assert_eq!(table.titles(ask).await, (expected, 4), "{} {offset}", bench.engine());
        }
        let search =
            |text: &str| RecordListRequest { search: text.to_owned(), ..RecordListRequest::default() };
        assert_eq!(table.titles(search("CAIRN x_y")).await.0, ["D"]);
        assert_eq!(table.titles(search("finish")).await.0, ["A", "C"]);
        assert_eq!(table.titles(search("nothing")).await.1, 0);
        let listed =
            table.records.list(&table.caller, &table.id(), RecordListRequest::default()).await.unwrap();
        for (place, shown) in listed.records.iter().enumerate() {
            let ask = RecordListRequest {
                record_id: Some(shown.id.to_string()),
                limit: 2,
                ..RecordListRequest::default()
            };
            let page = table.records.list(&table.caller, &table.id(), ask).await.unwrap();
            assert_eq!(page.offset, place as u64 / 2 * 2);
            assert!(page.records.contains(shown));
        }
        let wrong = RecordListRequest {
            filters: vec![
                tree(&is("Points", "contains", json!(1))),
                Filter::Is(Condition { field_id: "x".into(), operator: None, value: None }),
            ],
            limit: 201,
            allow_names: true,
            ..RecordListRequest::default()
        };
        let refused = table.records.list(&table.caller, &table.id(), wrong).await;
        let paths: Vec<String> = violations(refused).into_iter().map(|(path, _)| path).collect();
        assert_eq!(paths, ["limit", "filters[0].operator", "filters[1].operator", "filters[1].fieldId"]);
    }
}

#[tokio::test]
async fn schemas_change_under_records() {
    for bench in benches().await {
        let mut table = Table::new(&bench, None).await;
        table.fill().await;
        let status = table.field("Status");
        let keep = |id: &str, name: &str| OptionDraft { id: id.into(), name: name.into(), color: None };
        let options = table.database.property(status.parse().unwrap()).unwrap().config.options.clone();
        let config = SettingsDraft {
            options: Some(vec![keep(&options[2].id, "Complete"), keep(&options[0].id, "Todo")]),
            ..SettingsDraft::default()
        };
        let patch = PropertyPatch { config: Some(config), position: Some(1), ..PropertyPatch::default() };
        let changed =
            table.databases.update_property(&table.caller, &table.id(), &status, patch).await.unwrap();
        assert_eq!(changed.item.position, 1);
        table.reload().await;
        assert_eq!(table.sorted(&[("Status", "asc")]).await, "ABCD");
        assert_eq!(table.filtered(json!({"fieldId": "Status", "operator": "is_empty"})).await, "CD");
        let view = ViewDraft {
            name: "Open".into(),
            filters: vec![Condition {
                field_id: table.field("Points"),
                operator: Some(Operator::Gt),
                value: Some(json!(0)),
            }],
            sorts: vec![SortDraft { field_id: table.field("Points"), order: SortOrder::Asc }],
            hidden_field_ids: vec![status.clone()],
        };
        let view = table.databases.create_view(&table.caller, &table.id(), view).await.unwrap().item.item;
        let ask = RecordListRequest { view_id: Some(view.id.to_string()), ..RecordListRequest::default() };
        assert_eq!(table.titles(ask).await, (vec!["B".to_owned(), "A".to_owned()], 2));
        table.databases.delete_property(&table.caller, &table.id(), &status).await.unwrap();
        table.databases.delete_property(&table.caller, &table.id(), &table.field("Link")).await.unwrap();
        table.reload().await;
        assert!(table.database.views[1].hidden_field_ids.is_empty());
        let search = RecordListRequest { search: "cairn".into(), ..RecordListRequest::default() };
        assert_eq!(table.titles(search).await.1, 0, "a deleted property is not searched");
    }
}

#[tokio::test]
async fn a_scope_hides_what_it_does_not_cover() {
    for bench in benches().await {
        let (inside, outside) = (bench.folder("in", None).await, bench.folder("out", None).await);
        let (mine, other) = (bench.file("m", Some(inside.id)).await, bench.file("o", Some(outside.id)).await);
        let table = Table::new(&bench, Some(inside.id)).await;
        let root = Table::new(&bench, None).await;
        let scoped = bench.scoped(&[inside.id]);
        let made = table.make(json!({"Name": "r", "File": other.id})).await;
        let id = made.record.id.to_string();
        let seen = table.records.get(&scoped, &table.id(), &id).await.unwrap();
        assert!(!seen.record.values.contains_key(&table.field("File")));
        assert_eq!(links(&bench, &bench.caller, &other).await.unwrap().total, 1);
        assert_out_of_scope(links(&bench, &scoped, &other).await);
        let with = |file: FileId| records::RecordDraft {
            values: json!({table.field("File"): file}).to_string(),
            content_file_id: Some(Some(file.to_string())),
            ..records::RecordDraft::default()
        };
        assert_out_of_scope(table.records.create(&scoped, &table.id(), with(other.id)).await);
        table.records.create(&scoped, &table.id(), with(mine.id)).await.unwrap();
        let links = links(&bench, &scoped, &mine).await.unwrap().items;
        let via: Vec<bool> = links.iter().map(|link| link.property.is_some()).collect();
        assert_eq!(via, [true, false]);
        assert_out_of_scope(root.databases.get(&scoped, &root.id()).await);
        assert_out_of_scope(root.databases.create(&scoped, named("x", None)).await);
        let listed = table.databases.list(&scoped, None, first_page()).await.unwrap();
        assert_eq!((listed.items.len(), listed.total), (1, 1));
    }
}

#[tokio::test]
async fn a_record_is_a_document_with_its_body() {
    use crate::documents::DocumentRef;
    for bench in benches().await {
        let table = Table::new(&bench, None).await;
        let file = bench.file("body", None).await;
        let made = table.make(json!({"Name": "Acme", "Points": 3, "Tags": ["Todo", "Doing"]})).await;
        let id = made.record.id.to_string();
        let body = records::RecordDraft {
            content_file_id: Some(Some(file.id.to_string())),
            ..records::RecordDraft::default()
        };
        table.records.update(&bench.caller, &table.id(), &id, body).await.unwrap();
        let refs = [DocumentRef { kind: Some(cairn_chassis::feed::Kind::Record), id: id.clone() }];
        let workspace = bench.caller.workspace.to_string();
        let read = bench.documents.read(&workspace, &refs).await.unwrap();
        let (document, content) = &read.documents[0];
        assert_eq!(content, "Name: Acme\nPoints: 3\nTags: Todo, Doing\n\ncontent of body");
        assert_eq!((document.title.as_str(), document.path.as_str()), ("Acme", "/Tasks/Acme"));
        assert_eq!(document.database_id, Some(table.database.id));
        let before = bench.changes().await.len() as u64;
        let patch = files::FilePatch { content: Some("anew".into()), ..files::FilePatch::default() };
        bench.files.update(&bench.caller, &file.id.to_string(), patch).await.unwrap();
        assert!(bench.entries_after(before).await.iter().any(|entry| entry.item_id == id));
        let confirmed = bench.documents.confirm(&bench.caller, &refs).await.unwrap();
        assert_ne!(confirmed[0].content_hash, document.content_hash);
        table.databases.delete(&bench.caller, &table.id()).await.unwrap();
        assert!(bench.documents.confirm(&bench.caller, &refs).await.unwrap().is_empty());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement"]
async fn measure_pages_of_100_000_records() {
    const COUNT: u32 = 100_000;
    for bench in benches().await {
        let table = Table::new(&bench, None).await;
        let (name, points, status) = (table.field("Name"), table.field("Points"), table.field("Status"));
        let options = &table.database.property(status.parse().unwrap()).unwrap().config.options;
        let base = table.make(json!({"Name": "first"})).await.record;
        let mut tx = bench.context.db.begin_write().await.unwrap();
        for number in 0..COUNT {
            let values = json!({&name: format!("task {number}"), &points: number * 7919 % COUNT,
                &status: options[number as usize % 3].id});
            let values = values.as_object().unwrap().clone();
            let record = Record { id: bench.context.ids.next(), values, ..base.clone() };
            store::records::insert(&mut tx, &table.database, &record, &Author::default()).await.unwrap();
        }
        tx.commit().await.unwrap();
        if let sql::Engine::Postgres(pool) = bench.context.db.engine() {
            sqlx::raw_sql("VACUUM ANALYZE").execute(pool).await.unwrap();
        }
        let by = |field: &str| vec![SortDraft { field_id: field.to_owned(), order: SortOrder::Desc }];
        let open = json!({"fieldId": "Status", "operator": "equals", "value": "Todo"});
        let rare = json!({"fieldId": "Points", "operator": "lt", "value": 20});
        for (what, ask) in [
            ("by creation", RecordListRequest::default()),
            ("sorted", RecordListRequest { sorts: by("Points"), ..RecordListRequest::default() }),
            (
                "filter and sort",
                RecordListRequest {
                    sorts: by("Points"),
                    filters: vec![tree(&open)],
                    ..RecordListRequest::default()
                },
            ),
            (
                "rare filter, sort",
                RecordListRequest {
                    sorts: by("Name"),
                    filters: vec![tree(&rare)],
                    ..RecordListRequest::default()
                },
            ),
            ("search", RecordListRequest { search: "task 777".into(), ..RecordListRequest::default() }),
        ] {
            let ask = RecordListRequest { allow_names: true, ..ask };
            table.records.list(&table.caller, &table.id(), ask.clone()).await.unwrap();
            let began = std::time::Instant::now();
            for _ in 0..5 {
                table.records.list(&table.caller, &table.id(), ask.clone()).await.unwrap();
            }
            println!("{:9} {what}: {:?}", bench.engine(), began.elapsed() / 5);
        }
    }
}
