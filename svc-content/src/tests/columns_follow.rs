//! How columns come to be, what they are told, and what they may take.

use std::time::Duration;

use cairn_proto::domain::{Condition, Operator};
use serde_json::json;

use super::tables::Table;
use super::*;
use crate::columns::Columns;
use crate::databases::properties::{OptionDraft, PropertyPatch, SettingsDraft};
use crate::databases::views::ViewDraft;
use crate::records::{RecordListRequest, Records, TableDraft};

/// More than a request reads by itself.
const MANY: usize = 1_500;
const WRITERS: usize = 6;
const WRITES: usize = 12;
const READY_LIMIT: Duration = Duration::from_secs(60);

fn with(bench: &Bench, bytes: usize) -> (Records, SnapshotCache<Columns>) {
    let columns = SnapshotCache::new(bytes);
    (Records::new(Context { columns: columns.clone(), ..bench.context.clone() }), columns)
}

fn search(word: &str) -> RecordListRequest {
    RecordListRequest { search: word.to_owned(), limit: 5, ..RecordListRequest::default() }
}

/// A table of so many records of such names by import, a thousand at a time.
async fn large(bench: &Bench, name: impl Fn(usize) -> String) -> Table {
    let table = Table::new(bench, None).await;
    for part in [0..1_000, 1_000..MANY] {
        let rows: String = part.map(|number| format!("{},{number}\n", name(number))).collect();
        let csv = format!("Name,Points\n{rows}").into();
        let draft = TableDraft { csv, columns: Default::default(), dry_run: false };
        table.records.import(&bench.caller, &table.id(), &draft).await.unwrap();
    }
    table
}

/// Asks until the database is held: a database that is written to while it is read may be given up, and read anew later.
async fn ready(bench: &Bench, table: &Table, records: &Records, cache: &SnapshotCache<Columns>) {
    let began = tokio::time::Instant::now();
    while cache.len() == 0 {
        assert!(began.elapsed() < READY_LIMIT, "the database is never read");
        records.list(&bench.caller, &table.id(), search("row")).await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn everybody_reads_what_was_written_through_any_process() {
    for bench in benches().await {
        let table = Table::new(&bench, None).await;
        let processes: Vec<(Records, SnapshotCache<Columns>)> =
            (0..3).map(|_| with(&bench, COLUMNS_BYTES)).collect();
        let write = async |writer: usize| {
            for number in 0..WRITES {
                let (mine, other) = (&processes[writer % 3].0, &processes[(writer + 1) % 3].0);
                let name = format!("w{writer}n{number}x");
                let draft = crate::records::RecordDraft {
                    values: json!({"Name": name, "Points": number}).to_string(),
                    allow_names: true,
                    ..Default::default()
                };
                let made = mine.create(&bench.caller, &table.id(), draft).await.unwrap();
                let id = made.item.record.id.to_string();
                for records in [mine, other] {
                    let listed = records.list(&bench.caller, &table.id(), search(&name)).await.unwrap();
                    let ids: Vec<String> = listed.records.iter().map(|shown| shown.id.to_string()).collect();
                    assert_eq!((ids, listed.total), (vec![id.clone()], 1), "{} {name}", bench.engine());
                }
                if number % 3 == 0 {
                    mine.delete(&bench.caller, &table.id(), &id).await.unwrap();
                    for records in [mine, other] {
                        let listed = records.list(&bench.caller, &table.id(), search(&name)).await.unwrap();
                        assert_eq!(listed.total, 0, "{} {name} is in trash", bench.engine());
                    }
                }
            }
        };
        futures::future::join_all((0..WRITERS).map(write)).await;
        for (_, cache) in &processes {
            assert_eq!(cache.len(), 1);
        }
    }
}

#[tokio::test]
async fn a_page_is_of_the_database_as_another_process_left_it() {
    for bench in benches().await {
        let table = Table::new(&bench, None).await;
        table.fill().await;
        let (records, cache) = with(&bench, COLUMNS_BYTES);
        let everything = || RecordListRequest { allow_names: true, ..RecordListRequest::default() };
        for _ in 0..3 {
            records.list(&bench.caller, &table.id(), everything()).await.unwrap();
        }
        assert_eq!(cache.len(), 1, "{}", bench.engine());

        let few = ViewDraft {
            name: "Few".to_owned(),
            filters: vec![Condition {
                field_id: table.field("Points"),
                operator: Some(Operator::Gt),
                value: Some(json!(0)),
            }],
            ..ViewDraft::default()
        };
        let view = table.databases.create_view(&bench.caller, &table.id(), few).await.unwrap();
        let seen = RecordListRequest { view_id: Some(view.item.item.id.to_string()), ..everything() };
        let (engine, _) = with(&bench, 0);
        for _ in 0..2 {
            let listed = records.list(&bench.caller, &table.id(), seen.clone()).await.unwrap();
            assert_eq!(listed, engine.list(&bench.caller, &table.id(), seen.clone()).await.unwrap());
        }

        let patch = PropertyPatch { name: Some("Score".to_owned()), ..PropertyPatch::default() };
        let field = table.field("Points");
        table.databases.update_property(&bench.caller, &table.id(), &field, patch).await.unwrap();
        for _ in 0..2 {
            let listed = records.list(&bench.caller, &table.id(), everything()).await.unwrap();
            assert!(listed.property_names.values().any(|name| name == "Score"), "{}", bench.engine());
        }

        table.databases.delete(&bench.caller, &table.id()).await.unwrap();
        assert_not_found(records.list(&bench.caller, &table.id(), everything()).await, "database");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_database_is_read_behind_the_requests() {
    for bench in benches().await {
        let table = large(&bench, |number| format!("row {number}")).await;
        let (records, cache) = with(&bench, COLUMNS_BYTES);
        let (engine, _) = with(&bench, 0);
        let mut number = MANY;
        // Written while it is being read, and behind that.
        for _ in 0..8 {
            table.make(json!({"Name": format!("row {number}"), "Points": number})).await;
            number += 1;
            for word in ["row 14", "1499", ""] {
                let ask = RecordListRequest { offset: 3, ..search(word) };
                let answered = records.list(&bench.caller, &table.id(), ask.clone()).await.unwrap();
                let expected = engine.list(&bench.caller, &table.id(), ask).await.unwrap();
                assert_eq!(answered, expected, "{} {word} of {number}", bench.engine());
            }
        }
        ready(&bench, &table, &records, &cache).await;
        let listed = records.list(&bench.caller, &table.id(), search("row")).await.unwrap();
        assert_eq!(listed.total, number as u64);
        // More at once than columns are told one by one is read anew, and right meanwhile.
        let field = table.field("Points");
        for round in 0..5 {
            let name = Some(format!("Score {round}"));
            let patch = PropertyPatch { name, ..PropertyPatch::default() };
            table.databases.update_property(&bench.caller, &table.id(), &field, patch).await.unwrap();
        }
        let listed = records.list(&bench.caller, &table.id(), search("row")).await.unwrap();
        assert_eq!(listed.total, number as u64);
    }
}

#[tokio::test]
async fn a_page_shows_records_as_they_are_by_now() {
    for bench in benches().await {
        let mut table = Table::new(&bench, None).await;
        table.fill().await;
        let ((records, cache), (engine, _)) = (with(&bench, COLUMNS_BYTES), with(&bench, 0));
        let assert_same = async |id: &str, after: &str| {
            // Records of pages before are remembered, of whole pages and of parts.
            for (limit, offset) in [(3, 0), (3, 0), (4, 1), (2, 2), (3, 0)] {
                let ask = RecordListRequest { limit, offset, ..RecordListRequest::default() };
                let answered = records.list(&bench.caller, id, ask.clone()).await.unwrap();
                let expected = engine.list(&bench.caller, id, ask).await.unwrap();
                assert_eq!(answered, expected, "{} after {after}", bench.engine());
            }
        };
        let id = table.id();
        assert_same(&id, "they were made").await;
        assert_eq!(cache.len(), 1, "{}", bench.engine());
        let listed = engine.list(&bench.caller, &id, RecordListRequest::default()).await.unwrap();
        let record = listed.records.first().unwrap().id.to_string();

        table.change(&record, json!({"Points": 77, "Link": "https://cairn.example"})).await.unwrap();
        assert_same(&id, "a change of a value").await;
        table.change(&record, json!({"Name": "Another"})).await.unwrap();
        assert_same(&id, "a change of the title").await;

        let status = table.database.properties.iter().find(|property| property.name == "Status").unwrap();
        let renamed = status.config.options.iter().map(|option| OptionDraft {
            id: option.id.clone(),
            name: format!("{} by now", option.name),
            color: None,
        });
        let config = SettingsDraft { options: Some(renamed.collect()), ..SettingsDraft::default() };
        let patch = PropertyPatch { config: Some(config), ..PropertyPatch::default() };
        table.databases.update_property(&bench.caller, &id, &status.id.to_string(), patch).await.unwrap();
        table.reload().await;
        assert_same(&id, "new names of options").await;

        let link = table.field("Link");
        table.databases.delete_property(&bench.caller, &id, &link).await.unwrap();
        table.reload().await;
        assert_same(&id, "a property was deleted").await;

        table.records.delete(&bench.caller, &id, &record).await.unwrap();
        assert_same(&id, "a record was deleted").await;
        table.records.restore(&bench.caller, &id, &record).await.unwrap();
        assert_same(&id, "it was restored").await;
    }
}

/// A name of so many words that an index of all of them is made.
fn long_name(number: usize) -> String {
    const WORDS: [&str; 7] = ["quorum", "retry", "sju", "särskild", "re-try", "STRASSE", "100%"];
    let word = |place: usize| WORDS[(number / (place + 1) + place * place) % WORDS.len()];
    let words: Vec<&str> = (0..16).map(word).collect();
    format!("row {number} {}", words.join(" "))
}

#[tokio::test(flavor = "multi_thread")]
async fn many_texts_are_found_as_the_engine_finds_them() {
    for bench in benches().await {
        let table = large(&bench, long_name).await;
        let (records, cache) = with(&bench, COLUMNS_BYTES);
        let (engine, _) = with(&bench, 0);
        ready(&bench, &table, &records, &cache).await;
        let name = table.field("Name");
        for round in 0..4_usize {
            for text in
                ["quorum retry", "rum ret", "149", "7", "ä", "y sju r", "-", "straße", "zebra", "row 1"]
            {
                let contains = Condition {
                    field_id: name.clone(),
                    operator: Some(Operator::Contains),
                    value: Some(json!(text)),
                };
                let filtered = RecordListRequest {
                    filters: vec![cairn_proto::domain::Filter::Is(contains)],
                    offset: 2,
                    ..search("")
                };
                for ask in [filtered, search(text)] {
                    let answered = records.list(&bench.caller, &table.id(), ask.clone()).await.unwrap();
                    let expected = engine.list(&bench.caller, &table.id(), ask.clone()).await.unwrap();
                    assert_eq!(answered, expected, "{} {ask:?} in round {round}", bench.engine());
                }
            }
            // What was selected before follows what is written.
            let made = table.make(json!({"Name": long_name(149 + round)})).await.record.id.to_string();
            table.make(json!({"Name": "zebra quorum"})).await;
            if round.is_multiple_of(2) {
                table.change(&made, json!({"Name": "row 7 without the others"})).await.unwrap();
            } else {
                table.records.delete(&bench.caller, &table.id(), &made).await.unwrap();
            }
        }
        assert_eq!(cache.len(), 1, "{}", bench.engine());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_large_is_left_to_the_engine() {
    for bench in benches().await {
        let table = large(&bench, |number| format!("row {number}")).await;
        let (records, cache) = with(&bench, 4_096);
        for _ in 0..20 {
            let listed = records.list(&bench.caller, &table.id(), search("row 7")).await.unwrap();
            // Those with a seven in their number.
            assert_eq!(listed.total, 366, "{}", bench.engine());
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        assert_eq!(cache.len(), 0);
    }
}

#[tokio::test]
async fn another_workspace_finds_nothing_of_it() {
    for bench in benches().await {
        let table = Table::new(&bench, None).await;
        table.fill().await;
        for _ in 0..3 {
            table.records.list(&bench.caller, &table.id(), search("")).await.unwrap();
            let stranger = caller(2);
            assert_not_found(table.records.list(&stranger, &table.id(), search("")).await, "database");
        }
        assert_eq!(bench.context.columns.len(), 1);
        bench.context.columns.sweep(cairn_chassis::clock::Timestamp::from_micros(i64::MAX));
        assert_eq!(bench.context.columns.len(), 0, "nobody asks for it any more");
        table.databases.delete(&bench.caller, &table.id()).await.unwrap();
        assert_not_found(table.records.list(&bench.caller, &table.id(), search("")).await, "database");
    }
}
