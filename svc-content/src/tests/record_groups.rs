//! Records in groups, by columns and by the engine alone.

use cairn_proto::domain::{DateUnit, GroupOrder};
use serde_json::{Value, json};

use super::tables::{Table, tree};
use super::*;
use crate::databases::properties::SettingsDraft;
use crate::model::{Others, PropertyType};
use crate::records::{RecordGroups, RecordGroupsRequest, Records, Summary};

fn by(field: &str, summarize: &[&str]) -> RecordGroupsRequest {
    RecordGroupsRequest {
        group_by: field.to_owned(),
        summarize: summarize.iter().map(|field| (*field).to_owned()).collect(),
        allow_names: true,
        ..RecordGroupsRequest::default()
    }
}

/// What both ways answer, which is the same.
async fn asked(bench: &Bench, table: &Table, caller: &Caller, ask: RecordGroupsRequest) -> RecordGroups {
    let engine = Records::new(Context { columns: SnapshotCache::new(0), ..bench.context.clone() });
    let by_engine = engine.groups(caller, &table.id(), ask.clone()).await.unwrap();
    for _ in 0..3 {
        let by_columns = table.records.groups(caller, &table.id(), ask.clone()).await.unwrap();
        assert_eq!(by_columns, by_engine, "{} {ask:?}", bench.engine());
    }
    assert_eq!(bench.context.columns.len(), 1, "columns were never asked");
    by_engine
}

/// Values and counts.
fn counts(grouped: &RecordGroups) -> Value {
    grouped.groups.iter().map(|group| json!([group.value, group.count])).collect()
}

fn sums(summaries: &[Summary]) -> Value {
    let of = |one: &Summary| json!([one.count, one.sum, one.average, one.least, one.greatest]);
    summaries.iter().map(of).collect()
}

#[tokio::test]
async fn groups_are_counted_and_summed_up() {
    for bench in benches().await {
        let table = Table::new(&bench, None).await;
        table.fill().await;
        let ask = async |ask| asked(&bench, &table, &bench.caller, ask).await;
        let found = ask(by("Status", &["Points", "Due"])).await;
        assert_eq!(counts(&found), json!([["Todo", 1], ["Doing", 1], ["Finished", 1], [null, 1]]));
        assert_eq!(
            sums(&found.groups[0].summaries),
            json!([
                [1, 9.0, 9.0, 9, 9],
                [1, null, null, "2026-03-02T10:00:00.000Z", "2026-03-02T10:00:00.000Z"]
            ])
        );
        assert_eq!(
            sums(&found.groups[3].summaries),
            json!([[0, 0.0, null, null, null], [0, null, null, null, null]])
        );
        assert_eq!(found.total, 4);
        assert_eq!(
            sums(&found.summaries),
            json!([
                [3, 17.5, 5.833_333_333_333_33, -1.5, 10],
                [2, null, null, "2026-03-01", "2026-03-02T10:00:00.000Z"]
            ])
        );
        // A record with several values is in several groups, and counts once among all.
        let found = ask(by("Tags", &["Points"])).await;
        assert_eq!(counts(&found), json!([["Todo", 1], ["Doing", 1], ["Finished", 1], [null, 2]]));
        assert_eq!(sums(&found.summaries)[0][1], json!(17.5));
        assert_eq!((found.total, found.others), (4, Others::default()));

        let found = ask(by("Done", &[])).await;
        assert_eq!(counts(&found), json!([[false, 1], [true, 1], [null, 2]]));
        let down = RecordGroupsRequest { order: Some(GroupOrder::Desc), ..by("Points", &[]) };
        assert_eq!(counts(&ask(down).await), json!([[10, 1], [9, 1], [-1.5, 1], [null, 1]]));
        let month = |date_unit| RecordGroupsRequest { date_unit, ..by("Due", &[]) };
        assert_eq!(counts(&ask(month(DateUnit::Month)).await), json!([["2026-03", 2], [null, 2]]));
        assert_eq!(counts(&ask(month(DateUnit::Year)).await), json!([["2026", 2], [null, 2]]));
        assert_eq!(
            counts(&ask(month(DateUnit::Day)).await),
            json!([["2026-03-01", 1], ["2026-03-02", 1], [null, 2]])
        );
        let filter = json!({"fieldId": "Points", "operator": "gte", "value": 9});
        let narrowed = RecordGroupsRequest {
            filters: vec![tree(&filter)],
            search: "todo".to_owned(),
            ..by("Status", &["Points"])
        };
        let found = ask(narrowed).await;
        assert_eq!((counts(&found), found.total), (json!([["Todo", 1]]), 1));
        let nobody = RecordGroupsRequest { search: "nobody".to_owned(), ..by("Status", &["Points"]) };
        let found = ask(nobody).await;
        assert_eq!((counts(&found), found.total), (json!([]), 0));
        assert_eq!(sums(&found.summaries), json!([[0, 0.0, null, null, null]]));
    }
}

#[tokio::test]
async fn texts_are_grouped_as_filters_compare_them() {
    for bench in benches().await {
        let table = Table::new(&bench, None).await;
        let long = |end: &str| format!("{}{end}", "Å".repeat(200));
        let mut made = Vec::new();
        for name in ["Straße", "STRASSE", "Ada", &long("x"), &long("y")] {
            made.push((table.make(json!({"Name": name})).await.record.id, name.to_owned()));
        }
        let gone = table.make(json!({"Name": "Ada"})).await;
        table.records.delete(&bench.caller, &table.id(), &gone.record.id.to_string()).await.unwrap();
        let found = asked(&bench, &table, &bench.caller, by("Name", &[])).await;
        let groups: Vec<(&str, u64, bool)> =
            found.groups.iter().map(|one| (one.label.as_str(), one.count, one.is_beginning)).collect();
        let begun = long("");
        // As the record with the least id has it.
        let street = made[..2].iter().min().unwrap().1.as_str();
        assert_eq!(groups, [(street, 2, false), (begun.as_str(), 2, true), ("Ada", 1, false)]);
    }
}

#[tokio::test]
async fn many_groups_are_cut_and_told() {
    for bench in benches().await {
        let table = Table::new(&bench, None).await;
        let mut csv = "Name,Points,Due\n".to_owned();
        for number in 0..260 {
            // 250 is there ten times.
            let points = if number < 250 { number } else { 250 };
            csv += &format!("n,{points},{:04}-01-02\n", 1_000 + number);
        }
        csv += "n,,\n";
        let draft =
            crate::records::TableDraft { csv: csv.into(), columns: Default::default(), dry_run: false };
        table.records.import(&bench.caller, &table.id(), &draft).await.unwrap();
        let ask = async |ask| asked(&bench, &table, &bench.caller, ask).await;
        let found = ask(by("Points", &["Points"])).await;
        assert_eq!(found.groups.len(), 201);
        assert_eq!((&found.groups[0].value, &found.groups[199].value), (&Some(json!(0)), &Some(json!(199))));
        assert_eq!((&found.groups[200].value, found.groups[200].count), (&None, 1));
        assert_eq!((found.total, found.others), (261, Others { groups: 51, records: 60 }));
        assert_eq!(sums(&found.summaries)[0][1], json!((0..250).sum::<i32>() as f64 + 2_500.0));
        let most = RecordGroupsRequest { order: Some(GroupOrder::Count), ..by("Points", &[]) };
        let found = ask(most).await;
        assert_eq!((&found.groups[0].value, found.groups[0].count), (&Some(json!(250)), 10));
        assert_eq!(found.others, Others { groups: 51, records: 51 });
        for date_unit in DateUnit::ALL {
            let found = ask(RecordGroupsRequest { date_unit, ..by("Due", &[]) }).await;
            assert_eq!((found.groups.len(), found.others), (201, Others { groups: 60, records: 60 }));
            assert!(found.groups[0].label.starts_with("1000"), "{:?}", found.groups[0]);
        }
    }
}

#[tokio::test]
async fn references_are_told_by_name_and_hidden_ones_not_at_all() {
    for bench in benches().await {
        let (seen, hidden) = (bench.folder("Seen", None).await.id, bench.folder("Hidden", None).await.id);
        let near = bench.file("near.md", Some(seen)).await.id;
        let far = bench.file("far.md", Some(hidden)).await.id;
        let mut table = Table::new(&bench, Some(seen)).await;
        let other = Table::new(&bench, Some(hidden)).await;
        let target = other.make(json!({"Name": "Target"})).await.record.id;
        let config = SettingsDraft {
            relation_database_id: Some(other.database.id.to_string()),
            ..SettingsDraft::default()
        };
        table.add("Related", PropertyType::Relation, config).await;
        table.make(json!({"Name": "A", "File": near, "Points": 1, "Related": [target]})).await;
        table.make(json!({"Name": "B", "File": far, "Points": 2, "Related": [target]})).await;
        table.make(json!({"Name": "C", "Points": 4})).await;
        let scoped = bench.scoped(&[seen]);
        for _ in 0..2 {
            let whole = asked(&bench, &table, &bench.caller, by("File", &["Points"])).await;
            let mut labels: Vec<&str> = whole.groups.iter().map(|one| one.label.as_str()).collect();
            labels.sort_unstable();
            assert_eq!(labels, ["", "far.md", "near.md"]);
            let part = asked(&bench, &table, &scoped, by("File", &["Points"])).await;
            assert_eq!(counts(&part), json!([[near, 1], [null, 2]]));
            assert_eq!(sums(&part.groups[1].summaries)[0][1], json!(6.0));
            let whole = asked(&bench, &table, &bench.caller, by("Related", &["Points"])).await;
            assert_eq!(counts(&whole), json!([[target, 2], [null, 1]]));
            assert_eq!(
                (whole.groups[0].label.as_str(), &sums(&whole.summaries)[0][1]),
                ("Target", &json!(7.0))
            );
            let part = asked(&bench, &table, &scoped, by("Related", &["Points"])).await;
            assert_eq!((counts(&part), part.total), (json!([[null, 3]]), 3));
        }
        let outside = bench.scoped(&[hidden]);
        assert_out_of_scope(table.records.groups(&outside, &table.id(), by("File", &[])).await);
        assert_not_found(table.records.groups(&caller(2), &table.id(), by("File", &[])).await, "database");
    }
}

#[tokio::test]
async fn what_is_wrong_is_all_said() {
    for bench in benches().await {
        let table = Table::new(&bench, None).await;
        let ask = async |ask| violations(table.records.groups(&bench.caller, &table.id(), ask).await);
        let wrong = RecordGroupsRequest {
            filters: vec![tree(&json!({"fieldId": "Points", "operator": "contains", "value": 1}))],
            ..by("Nothing", &["Name", "Points", "Points", "None"])
        };
        assert_eq!(
            ask(wrong).await,
            pairs(&[
                ("summarize[0]", "wrong_type"),
                ("summarize[2]", "duplicate"),
                ("summarize[3]", "unknown_property"),
                ("groupBy", "unknown_property"),
                ("filters[0].operator", "invalid_operator"),
            ])
        );
        assert_eq!(
            ask(by("", &["Points"; 11])).await,
            pairs(&[("summarize", "too_many"), ("groupBy", "required"),])
        );
        let by_name = RecordGroupsRequest { allow_names: false, ..by("Status", &[]) };
        assert_eq!(ask(by_name).await, pairs(&[("groupBy", "unknown_property")]));
    }
}
