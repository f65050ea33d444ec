//! Tables that become records, on every engine.

use super::tables::Table;
use super::*;
use crate::records::{Imported, RecordListRequest, TableDraft};

async fn import(
    table: &Table,
    csv: &str,
    columns: &[(u32, Option<&str>)],
    dry_run: bool,
) -> Result<Imported, Error> {
    let columns = columns.iter().map(|(place, field)| (*place, field.map(ToOwned::to_owned))).collect();
    let draft = TableDraft { csv: csv.as_bytes().to_vec(), columns, dry_run };
    table.records.import(&table.caller, &table.id(), &draft).await
}

fn places(imported: &Imported) -> Vec<(u64, &str, &str)> {
    imported
        .problems
        .iter()
        .map(|problem| (problem.row, problem.column.as_str(), problem.code.as_str()))
        .collect()
}

#[tokio::test]
async fn every_row_becomes_a_record() {
    for bench in benches().await {
        let table = Table::new(&bench, None).await;
        let csv = "name;POINTS;Status;Tags;Due;Done;Else\na;3;todo;Todo, Doing;2026-11-23;yes;x\n'=b;;;;;;\n";
        let looked = import(&table, csv, &[], true).await.unwrap();
        assert_eq!((looked.rows, looked.created, looked.position, looked.wrong_rows), (2, 0, 0, 0));
        let goes: Vec<bool> = looked.columns.iter().map(|column| column.property.is_some()).collect();
        assert_eq!(goes, [true, true, true, true, true, true, false]);
        assert_eq!(table.titles(RecordListRequest::default()).await.1, 0);
        let done = import(&table, csv, &[], false).await.unwrap();
        assert_eq!(done.created, 2);
        assert!(done.position > 0);
        assert_eq!(table.titles(RecordListRequest::default()).await.0, ["a", "=b"]);
        let read = table.databases.get(&table.caller, &table.id()).await.unwrap();
        assert_eq!(read.record_count, 2);
    }
}

#[tokio::test]
async fn nothing_is_written_when_a_row_is_wrong() {
    for bench in benches().await {
        let table = Table::new(&bench, None).await;
        let csv = "Name,Points,Status,Tags,File\na,1,,,\nb,many,Never,\"Todo,Nope\",\nc,,,,x\n";
        let looked = import(&table, csv, &[], true).await.unwrap();
        assert_eq!(looked.wrong_rows, 2);
        let expected = [
            (3, "Points", "wrong_type"),
            (3, "Status", "unknown_option"),
            (3, "Tags", "unknown_option"),
            (4, "File", "invalid_id"),
        ];
        let mut found = places(&looked);
        found.sort_unstable();
        assert_eq!(found, expected);
        let refused = violations(import(&table, csv, &[], false).await);
        assert_eq!(refused.len(), 4);
        assert!(refused.contains(&("rows[3].Points".to_owned(), "wrong_type".to_owned())), "{refused:?}");
        assert_eq!(table.titles(RecordListRequest::default()).await.1, 0);
        // What a column is left out of cannot be wrong.
        let done = import(&table, csv, &[(1, None), (2, None), (3, None), (4, None)], false).await.unwrap();
        assert_eq!(done.created, 3);
    }
}

#[tokio::test]
async fn columns_go_where_they_are_told_to() {
    for bench in benches().await {
        let table = Table::new(&bench, None).await;
        let (name, points) = (table.field("Name"), table.field("Points"));
        let done = import(&table, "Who,How many\nme,7", &[(0, Some(&name)), (1, Some(&points))], false).await;
        assert_eq!(done.unwrap().created, 1);
        let refused = async |columns: &[(u32, Option<&str>)]| {
            violations(import(&table, "Who,Name\nme,7", columns, true).await)
        };
        assert_eq!(refused(&[(0, Some(&name))]).await, pairs(&[("columns", "duplicate")]));
        assert_eq!(refused(&[(9, Some(&name))]).await, pairs(&[("columns[0]", "invalid")]));
        assert_eq!(refused(&[(0, Some("x"))]).await, pairs(&[("columns[0]", "not_found")]));
        assert_eq!(refused(&[(1, None)]).await, pairs(&[("columns", "required")]));
        let stranger = Caller { workspace: caller(2).workspace, ..table.caller.clone() };
        let draft = TableDraft { csv: b"Name\nx".to_vec(), ..TableDraft::default() };
        assert_not_found(table.records.import(&stranger, &table.id(), &draft).await, "database");
    }
}
