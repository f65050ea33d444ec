//! Writers of one record, one slug and one database at the same time: whatever the interleaving, the store is sound.

use cairn_chassis::feed::Kind;
use serde_json::json;
use tokio::task::JoinSet;

use super::tables::Table;
use super::*;
use crate::memories;
use crate::records;

fn values(values: &serde_json::Value) -> records::RecordDraft {
    records::RecordDraft { values: values.to_string(), allow_names: true, ..records::RecordDraft::default() }
}

/// Many writers who all claim to know the version: it is replaced once, and the others are told.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_writers_with_the_same_version_one_wins() {
    for bench in benches().await {
        let table = Table::new(&bench, None).await;
        let id = table.make(json!({"Name": "one"})).await.record.id.to_string();
        let mut tasks = JoinSet::new();
        for number in 0..8 {
            let (records, caller, database, id) =
                (table.records.clone(), bench.caller.clone(), table.id(), id.clone());
            tasks.spawn(async move {
                let draft =
                    records::RecordDraft { if_version: vec![1], ..values(&json!({"Points": number})) };
                records.update(&caller, &database, &id, draft).await
            });
        }
        let results = tasks.join_all().await;
        let won = results.iter().filter(|result| result.is_ok()).count();
        let told =
            results.iter().filter(|result| matches!(result, Err(Error::RecordConflict { actual: 2, .. })));
        assert_eq!((won, told.count()), (1, 7), "{} {results:?}", bench.engine());
        assert_eq!(bench.wrong().await, [], "{}", bench.engine());
    }
}

/// Each writer has a property of its own: none is lost, and every change is a version.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writers_of_different_properties_merge() {
    for bench in benches().await {
        let table = Table::new(&bench, None).await;
        let id = table.make(json!({"Name": "one"})).await.record.id.to_string();
        let given = [
            json!({"Points": 5}),
            json!({"Done": true}),
            json!({"Due": "2026-01-01"}),
            json!({"Link": "https://cairn.example"}),
            json!({"Status": "Todo"}),
            json!({"Tags": ["Doing"]}),
        ];
        let mut tasks = JoinSet::new();
        for one in given {
            let (records, caller, database, id) =
                (table.records.clone(), bench.caller.clone(), table.id(), id.clone());
            tasks.spawn(async move { records.update(&caller, &database, &id, values(&one)).await.unwrap() });
        }
        tasks.join_all().await;
        let record = table.records.get(&bench.caller, &table.id(), &id).await.unwrap().record;
        assert_eq!((record.version, record.values.len()), (7, 7), "{} {record:?}", bench.engine());
        assert_eq!(bench.wrong().await, [], "{}", bench.engine());
    }
}

/// Memories of one name, made at once, all have slugs of their own; of those who ask for one slug, one gets it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_slug_is_given_once() {
    for bench in benches().await {
        let mut tasks = JoinSet::new();
        for number in 0..12 {
            let (rules, caller) = (bench.memories(), bench.caller.clone());
            let slug = (number % 2 == 0).then(|| "wanted".to_owned());
            tasks.spawn(async move {
                let draft = memories::MemoryDraft {
                    name: "Same name".into(),
                    slug,
                    ..memories::MemoryDraft::default()
                };
                rules.create(&caller, draft).await.map(|made| made.item.slug)
            });
        }
        let results = tasks.join_all().await;
        let refused = results.iter().filter(|result| matches!(result, Err(Error::SlugTaken(_)))).count();
        let mut slugs: Vec<String> = results.into_iter().filter_map(Result::ok).collect();
        slugs.sort();
        let expected = [
            "same-name",
            "same-name-2",
            "same-name-3",
            "same-name-4",
            "same-name-5",
            "same-name-6",
            "wanted",
        ];
        assert_eq!((refused, slugs.iter().map(String::as_str).collect::<Vec<_>>()), (5, expected.to_vec()));
        assert_eq!(bench.wrong().await, [], "{}", bench.engine());
    }
}

/// A record and its database are written, deleted, restored and removed by everybody at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whoever_comes_first_the_trash_is_true() {
    for bench in benches().await {
        for round in 0..6 {
            let folder = bench.folder(&format!("f{round}"), None).await.id;
            let table = Table::new(&bench, Some(folder)).await;
            let id = table.make(json!({"Name": "one"})).await.record.id.to_string();
            let gone = table.make(json!({"Name": "gone"})).await.record.id.to_string();
            table.records.delete(&bench.caller, &table.id(), &gone).await.unwrap();
            let mut tasks = JoinSet::new();
            for number in 0..8 {
                let (records, databases, trash) =
                    (table.records.clone(), table.databases.clone(), bench.trash());
                let (folders, caller) = (bench.folders.clone(), bench.caller.clone());
                let (database, id, gone) = (table.id(), id.clone(), gone.clone());
                // Each may find that another came first; none may fail in the storage.
                tasks.spawn(async move {
                    let result = match number {
                        0 => databases.delete(&caller, &database).await.map(|_| ()),
                        1 => records.delete(&caller, &database, &id).await.map(|_| ()),
                        2 => records.restore(&caller, &database, &gone).await.map(|_| ()),
                        3 => trash.restore(&caller, Kind::Record, &gone).await.map(|_| ()),
                        4 => trash.restore(&caller, Kind::Database, &database).await.map(|_| ()),
                        5 => databases.restore(&caller, &database).await.map(|_| ()),
                        6 => trash.remove(&caller, Kind::Database, &database).await.map(|_| ()),
                        _ => folders.delete(&caller, &folder.to_string()).await.map(|_| ()),
                    };
                    assert!(!matches!(result, Err(Error::Storage(_))), "{number} {result:?}");
                });
            }
            tasks.join_all().await;
            assert_eq!(bench.wrong().await, [], "{} {round}", bench.engine());
        }
    }
}

/// A folder comes back or goes for good while what went along with it, and what was in its trash, is asked back by
/// itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_folder_and_its_databases_race() {
    for bench in benches().await {
        for round in 0..8 {
            let folder = bench.folder(&format!("f{round}"), None).await.id;
            let (along, before) =
                (Table::new(&bench, Some(folder)).await, Table::new(&bench, Some(folder)).await);
            along.make(json!({"Name": "one"})).await;
            before.make(json!({"Name": "two"})).await;
            before.databases.delete(&bench.caller, &before.id()).await.unwrap();
            bench.folders.delete(&bench.caller, &folder.to_string()).await.unwrap();
            let mut tasks = JoinSet::new();
            for number in 0..4 {
                let (databases, trash, caller) =
                    (along.databases.clone(), bench.trash(), bench.caller.clone());
                let (along, before, folder) = (along.id(), before.id(), folder.to_string());
                tasks.spawn(async move {
                    let result = match number {
                        0 => databases.restore(&caller, &along).await.map(|_| ()),
                        1 => databases.restore(&caller, &before).await.map(|_| ()),
                        2 if round % 2 == 0 => {
                            trash.restore(&caller, Kind::Folder, &folder).await.map(|_| ())
                        }
                        2 => trash.remove(&caller, Kind::Folder, &folder).await.map(|_| ()),
                        _ => databases.purge(&caller, &along).await.map(|_| ()),
                    };
                    assert!(!matches!(result, Err(Error::Storage(_))), "{number} {result:?}");
                });
            }
            tasks.join_all().await;
            assert_eq!(bench.wrong().await, [], "{} {round}", bench.engine());
        }
    }
}
