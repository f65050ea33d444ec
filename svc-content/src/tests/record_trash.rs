//! Databases and records in the trash: through their own rules and through those of the trash.

use std::time::Duration;

use cairn_chassis::clock::{ManualClock, Timestamp};
use cairn_chassis::feed::{Kind, Op};
use cairn_chassis::on_db;
use cairn_chassis::sql::Migration;
use serde_json::json;

use super::tables::Table;
use super::*;
use crate::databases::Databases;
use crate::records::{RecordListRequest, Records};
use crate::trash::Trash;

impl Bench {
    /// Kind, path and count of what is in trash, the latest first.
    async fn told(&self) -> Vec<(Kind, String, u64)> {
        let listed = self.in_trash().await.into_iter().map(|one| one.deletion);
        listed.map(|deletion| (deletion.kind, deletion.path, deletion.items)).collect()
    }
}

fn told(expected: &[(Kind, &str)]) -> Vec<(Kind, String, u64)> {
    expected.iter().map(|(kind, path)| (*kind, (*path).to_owned(), 1)).collect()
}

async fn all(table: &Table) -> (Vec<String>, u64) {
    table.titles(RecordListRequest::default()).await
}

#[tokio::test]
async fn a_database_comes_back_with_exactly_the_records_that_it_had() {
    for bench in benches().await {
        let folder = bench.folder("f", None).await;
        let table = Table::new(&bench, Some(folder.id)).await;
        table.fill().await;
        let earlier = table.make(json!({"Name": "earlier"})).await.record.id.to_string();
        table.records.delete(&bench.caller, &table.id(), &earlier).await.unwrap();
        table.databases.delete(&bench.caller, &table.id()).await.unwrap();
        let expected = told(&[(Kind::Database, "/f/Tasks"), (Kind::Record, "/f/Tasks/earlier")]);
        assert_eq!(bench.told().await, expected, "{}", bench.engine());
        let listed = bench.in_trash().await;
        assert_eq!(listed[0].deletion.parent_id, Some(folder.id));
        assert_eq!(listed[1].deletion.holder(), Some(table.id()));

        let refused = bench.trash().restore(&bench.caller, Kind::Record, &earlier).await;
        assert_eq!(violations(refused), pairs(&[("itemId", "database_in_trash")]));
        let before = bench.changes().await.len() as u64;
        let back = bench.trash().restore(&bench.caller, Kind::Database, &table.id()).await.unwrap();
        assert_eq!((back.path.as_str(), back.items, back.position), ("/f/Tasks", 1, before + 5));
        let entries = bench.entries_after(before).await;
        assert!(entries.iter().all(|entry| entry.op == Op::Upsert), "{entries:?}");
        assert_eq!(entries.iter().filter(|entry| entry.kind == Kind::Record).count(), 4);
        let (mut titles, total) = all(&table).await;
        titles.sort();
        assert_eq!((titles.join(""), total), ("ABCD".into(), 4), "{}", bench.engine());

        let back = bench.trash().restore(&bench.caller, Kind::Record, &earlier).await.unwrap();
        assert_eq!((back.path.as_str(), back.parent_id), ("/f/Tasks/earlier", Some(table.id())));
        assert_eq!(all(&table).await.1, 5);
        assert_eq!(
            table.filtered(json!({"fieldId": "Name", "operator": "equals", "value": "earlier"})).await,
            "earlier"
        );
        assert_eq!(bench.told().await, []);
        assert_eq!(bench.wrong().await, [], "{}", bench.engine());
    }
}

/// What the databases' own operations do, the trash knows.
#[tokio::test]
async fn the_trash_knows_what_databases_and_records_do_by_themselves() {
    for bench in benches().await {
        let table = Table::new(&bench, None).await;
        let long = "x".repeat(300);
        let one = table.make(json!({"Name": long})).await.record.id.to_string();
        let untitled = table.make(json!({"Points": 1})).await.record.id.to_string();
        for id in [&one, &untitled] {
            table.records.delete(&bench.caller, &table.id(), id).await.unwrap();
        }
        let cut = format!("/Tasks/{}", "x".repeat(255));
        let expected = told(&[(Kind::Record, "/Tasks/Untitled"), (Kind::Record, &cut)]);
        assert_eq!(bench.told().await, expected, "{}", bench.engine());
        table.records.restore(&bench.caller, &table.id(), &one).await.unwrap();
        table.records.purge(&bench.caller, &table.id(), &untitled).await.unwrap();
        assert_eq!(bench.told().await, []);
        assert_eq!(all(&table).await, (vec![long], 1));
        for operation in ["restore", "purge"] {
            table.databases.delete(&bench.caller, &table.id()).await.unwrap();
            assert_eq!(bench.told().await[0], (Kind::Database, "/Tasks".into(), 1));
            match operation {
                "restore" => {
                    table.databases.restore(&bench.caller, &table.id()).await.unwrap();
                    table.records.delete(&bench.caller, &table.id(), &one).await.unwrap();
                }
                _ => {
                    table.databases.purge(&bench.caller, &table.id()).await.unwrap();
                    assert_eq!(bench.told().await, [], "with its records");
                }
            }
        }
        assert_eq!(bench.wrong().await, [], "{}", bench.engine());
    }
}

#[tokio::test]
async fn removed_for_good_takes_what_was_deleted_before_along() {
    for bench in benches().await {
        let folder = bench.folder("f", None).await;
        for (kind, id) in [(Kind::Database, None), (Kind::Folder, Some(folder.id))] {
            let table = Table::new(&bench, id).await;
            table.fill().await;
            let earlier = table.make(json!({"Name": "earlier"})).await.record.id.to_string();
            table.records.delete(&bench.caller, &table.id(), &earlier).await.unwrap();
            let item = match id {
                None => table.databases.delete(&bench.caller, &table.id()).await.map(|_| table.id()),
                Some(id) => {
                    bench.folders.delete(&bench.caller, &id.to_string()).await.map(|_| id.to_string())
                }
            };
            bench.trash().remove(&bench.caller, kind, &item.unwrap()).await.unwrap();
            assert_eq!(bench.told().await, [], "{}", bench.engine());
            for table in ["databases", "records", "record_cells", "record_versions", "record_counts"] {
                let sql = match table {
                    "databases" => "SELECT COUNT(*) FROM databases",
                    "records" => "SELECT COUNT(*) FROM records",
                    "record_cells" => "SELECT COUNT(*) FROM record_cells",
                    "record_versions" => "SELECT COUNT(*) FROM record_versions",
                    _ => "SELECT COUNT(*) FROM record_counts",
                };
                assert_eq!(bench.count_of(sql).await, 0, "{} {table}", bench.engine());
            }
            assert_eq!(bench.wrong().await, [], "{} {kind:?}", bench.engine());
        }
    }
}

#[tokio::test]
async fn a_database_without_its_folder_comes_back_into_the_root() {
    for bench in benches().await {
        let folder = bench.folder("f", None).await;
        let table = Table::new(&bench, Some(folder.id)).await;
        table.databases.delete(&bench.caller, &table.id()).await.unwrap();
        bench.folders.delete(&bench.caller, &folder.id.to_string()).await.unwrap();
        bench.trash().remove(&bench.caller, Kind::Folder, &folder.id.to_string()).await.unwrap();
        assert_eq!(bench.wrong().await, [], "{}", bench.engine());
        let back = bench.trash().restore(&bench.caller, Kind::Database, &table.id()).await.unwrap();
        assert_eq!((back.path.as_str(), back.parent_id), ("/Tasks", None));
        let database = table.databases.get(&bench.caller, &table.id()).await.unwrap();
        assert_eq!((database.folder_id, database.path.as_str()), (None, "/Tasks"));
        // What went along with a folder is restored with it, or by its own operation; the trash does not list it.
        let other = Table::new(&bench, Some(bench.folder("g", None).await.id)).await;
        let holder = other.database.folder_id.unwrap().to_string();
        bench.folders.delete(&bench.caller, &holder).await.unwrap();
        let refused = bench.trash().restore(&bench.caller, Kind::Database, &other.id()).await;
        assert!(matches!(refused, Err(Error::WentAlong { with: "folder", .. })), "{refused:?}");
        other.databases.restore(&bench.caller, &other.id()).await.unwrap();
        let back = bench.trash().restore(&bench.caller, Kind::Folder, &holder).await.unwrap();
        assert_eq!(back.items, 1, "the folder alone");
        assert_eq!(bench.wrong().await, [], "{}", bench.engine());
    }
}

#[tokio::test]
async fn databases_and_records_grow_too_old() {
    for mut bench in benches().await {
        let clock = Arc::new(ManualClock::new(Timestamp::from_seconds(1_800_000_000)));
        bench.context = bench.by_clock(Arc::<ManualClock>::clone(&clock));
        let table = Table::new(&bench, None).await;
        let record = table.make(json!({"Name": "r"})).await.record.id.to_string();
        let kept = Table::new(&bench, None).await;
        table.records.delete(&bench.caller, &table.id(), &record).await.unwrap();
        kept.databases.delete(&bench.caller, &kept.id()).await.unwrap();
        let day = Duration::from_secs(24 * 60 * 60);
        let trash = Trash::new(bench.context.clone(), Some(day));
        clock.advance(day);
        assert_eq!(trash.sweep().await.unwrap(), 0);
        clock.advance(Duration::from_micros(1));
        assert_eq!(trash.sweep().await.unwrap(), 2, "{}", bench.engine());
        assert_eq!(trash.sweep().await.unwrap(), 0);
        assert_eq!(bench.told().await, []);
        assert_not_found(table.records.restore(&bench.caller, &table.id(), &record).await, "record");
        assert_not_found(kept.databases.restore(&bench.caller, &kept.id()).await, "database");
        assert_eq!(bench.count_of("SELECT COUNT(*) FROM databases").await, 1);
        assert_eq!(bench.wrong().await, [], "{}", bench.engine());
    }
}

/// What was deleted before the trash listed databases and records, it lists after the step.
#[tokio::test]
async fn what_was_deleted_before_is_listed_after_the_migration() {
    for test in engines().await {
        let before: Vec<Migration> =
            store::MIGRATIONS.iter().filter(|step| !step.name.starts_with("0009")).copied().collect();
        let db = test.open(store::SCHEMA, before.leak()).await.unwrap();
        let folder = FolderId(Uuid::from_u128(5));
        let statements = [
            "INSERT INTO databases (workspace_id, id, folder_id, name, properties, views, created_at, updated_at, \
             deleted_at, deletion_id) SELECT '00000000-0000-0000-0000-000000000001', id, folder, name, '[]', '[]', 1, 1, \
             gone, deletion FROM (SELECT '00000000-0000-0000-0000-00000000000a' AS id, NULL AS folder, 'live' AS name, \
             CAST(NULL AS BIGINT) AS gone, NULL AS deletion UNION ALL \
             SELECT '00000000-0000-0000-0000-00000000000b', '00000000-0000-0000-0000-000000000005', 'dead', 7, \
             '00000000-0000-0000-0000-0000000000d1') AS made",
            "INSERT INTO records (workspace_id, id, database_id, field_values, title, searched, version, created_at, \
             updated_at, deleted_at, deletion_id) SELECT '00000000-0000-0000-0000-000000000001', id, \
             '00000000-0000-0000-0000-00000000000a', '{}', title, '', 1, 1, 1, 8, deletion FROM (\
             SELECT '00000000-0000-0000-0000-00000000001a' AS id, 'r' AS title, \
             '00000000-0000-0000-0000-0000000000d2' AS deletion UNION ALL \
             SELECT '00000000-0000-0000-0000-00000000001b', ' ', '00000000-0000-0000-0000-0000000000d3') AS made",
        ];
        for sql in statements {
            on_db!(db.writer(), |c| sqlx::query(sql).execute(c).await.map(|_| ())).unwrap();
        }
        db.close().await;
        let db = open(&test).await;
        let bench = Bench::new(test, db);
        let expected =
            [(Kind::Record, "/live/Untitled"), (Kind::Record, "/live/r"), (Kind::Database, "/dead")];
        assert_eq!(bench.told().await, told(&expected), "{}", bench.engine());
        let listed = bench.in_trash().await;
        assert_eq!(listed[0].deletion.holder(), Some("00000000-0000-0000-0000-00000000000a".into()));
        assert_eq!(listed[2].deletion.parent_id, Some(folder), "as it was then");
        let left = bench.count_of("SELECT COUNT(*) FROM databases WHERE folder_id IS NOT NULL").await;
        assert_eq!(left, 0, "the folder is gone");
        bench.trash().remove(&bench.caller, Kind::Record, &listed[0].deletion.item_id).await.unwrap();
        assert_eq!(bench.told().await.len(), 2);
    }
}

#[tokio::test]
async fn a_scope_holds_in_the_trash_of_databases_and_records() {
    for bench in benches().await {
        let folder = bench.folder("f", None).await;
        let table = Table::new(&bench, Some(folder.id)).await;
        let record = table.make(json!({"Name": "r"})).await.record.id.to_string();
        let scoped = bench.scoped(&[folder.id]);
        let elsewhere = bench.scoped(&[bench.folder("other", None).await.id]);
        let (databases, records) =
            (Databases::new(bench.context.clone()), Records::new(bench.context.clone()));
        records.delete(&scoped, &table.id(), &record).await.unwrap();
        assert_out_of_scope(bench.trash().restore(&elsewhere, Kind::Record, &record).await);
        bench.trash().restore(&scoped, Kind::Record, &record).await.unwrap();
        records.delete(&scoped, &table.id(), &record).await.unwrap();
        records.restore(&scoped, &table.id(), &record).await.unwrap();
        databases.delete(&scoped, &table.id()).await.unwrap();
        assert_out_of_scope(bench.trash().remove(&elsewhere, Kind::Database, &table.id()).await);
        assert_out_of_scope(bench.trash().list(&scoped, None, first_page()).await);
        let stranger = caller(77);
        for (kind, id) in [(Kind::Database, table.id()), (Kind::Record, record)] {
            assert_not_found(bench.trash().restore(&stranger, kind, &id).await, "item in trash");
            assert_not_found(bench.trash().remove(&stranger, kind, &id).await, "item in trash");
        }
        databases.restore(&scoped, &table.id()).await.unwrap();
        assert_eq!(bench.told().await, [], "{}", bench.engine());
    }
}
