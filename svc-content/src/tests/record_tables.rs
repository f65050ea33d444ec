//! Tables that become records, on every engine.

use super::tables::{Table, named};
use super::*;
use crate::model::PropertyType;
use crate::records::{
    DatabaseFromTable, FieldChoice, Imported, RecordListRequest, Records, TableDraft, TableImport,
};

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

async fn make(
    bench: &Bench,
    csv: &str,
    fields: Vec<FieldChoice>,
    dry_run: bool,
) -> Result<TableImport, Error> {
    let draft =
        DatabaseFromTable { database: named("Tasks", None), csv: csv.as_bytes().to_vec(), fields, dry_run };
    Records::new(bench.context.clone()).create_database(&bench.caller, draft).await
}

fn choice(index: u32) -> FieldChoice {
    FieldChoice { index, ..FieldChoice::default() }
}

const TASKS: &str = "Points,Task,State,Due,Link,Task,,Seen\n\
    1,write,Open,2026-11-23,https://example.com/,a,,yes\n\
    2,read,done,2026-11-24,https://example.com/,b,,no\n\
    ,'=sum,Open,,,c,,\n\
    4,mend,Done,,,d,,\n\
    5,mend,Done,,,d,,\n\
    6,mend,Done,,,e,,\n";

#[tokio::test]
async fn a_database_is_made_of_what_the_columns_look_like() {
    for bench in benches().await {
        let looked = make(&bench, TASKS, Vec::new(), true).await.unwrap();
        let found: Vec<_> =
            looked.fields.iter().map(|one| (one.name.as_str(), one.kind, one.is_left_out)).collect();
        assert_eq!(
            found,
            [
                ("Points", PropertyType::Number, false),
                ("Task", PropertyType::Text, false),
                ("State", PropertyType::Select, false),
                ("Due", PropertyType::Date, false),
                ("Link", PropertyType::Url, false),
                ("Task (2)", PropertyType::Text, false),
                ("Column 7", PropertyType::Text, true),
                ("Seen", PropertyType::Boolean, false),
            ]
        );
        assert_eq!(looked.fields[2].options, ["Open", "done"]);
        assert!(looked.fields[1].is_primary && looked.database.is_none());
        assert_eq!((looked.imported.rows, looked.imported.wrong_rows, looked.imported.created), (6, 0, 0));
        let made = make(&bench, TASKS, Vec::new(), false).await.unwrap();
        let table = Table::on(&bench, made.database.unwrap());
        let names: Vec<&str> = table.database.properties.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["Task", "Points", "State", "Due", "Link", "Task (2)", "Seen"]);
        assert_eq!((made.imported.created, table.database.record_count), (6, 6));
        let titles = table.titles(RecordListRequest::default()).await.0;
        assert_eq!(titles, ["write", "read", "=sum", "mend", "mend", "mend"]);
        let read = table.databases.get(&table.caller, &table.id()).await.unwrap();
        assert_eq!((read.record_count, read.properties), (6, table.database.properties.clone()));
    }
}

#[tokio::test]
async fn columns_become_what_is_chosen() {
    for bench in benches().await {
        let csv = "Tags,Name\n\"a, b\",1\nb,2\n";
        let tags = FieldChoice {
            kind: Some(PropertyType::MultiSelect),
            name: Some("Labels".to_owned()),
            ..choice(0)
        };
        let made = make(&bench, csv, vec![tags.clone()], false).await.unwrap();
        assert_eq!(made.fields[0].options, ["a", "b"]);
        let database = made.database.unwrap();
        let kinds: Vec<_> = database.properties.iter().map(|one| (one.name.as_str(), one.kind)).collect();
        assert_eq!(kinds, [("Name", PropertyType::Text), ("Labels", PropertyType::MultiSelect)]);
        let left_out = FieldChoice { is_left_out: true, ..choice(0) };
        let made = make(&bench, csv, vec![left_out.clone()], true).await.unwrap();
        assert!(made.fields[0].is_left_out && made.fields[1].is_primary);

        let refused = async |fields: Vec<FieldChoice>| violations(make(&bench, csv, fields, true).await);
        let number = FieldChoice { kind: Some(PropertyType::Number), ..choice(1) };
        let reference = FieldChoice { kind: Some(PropertyType::Relation), ..choice(0) };
        let primary = |of: FieldChoice| FieldChoice { is_primary: true, ..of };
        assert_eq!(refused(vec![choice(9)]).await, pairs(&[("fields[0].index", "invalid")]));
        assert_eq!(refused(vec![choice(1), choice(1)]).await, pairs(&[("fields[1].index", "duplicate")]));
        assert_eq!(refused(vec![reference]).await, pairs(&[("fields[0].type", "invalid")]));
        assert_eq!(refused(vec![primary(number.clone())]).await, pairs(&[("fields[0].type", "invalid")]));
        assert_eq!(refused(vec![tags, number]).await, pairs(&[("fields", "required")]));
        assert_eq!(
            refused(vec![left_out.clone(), FieldChoice { index: 1, ..left_out.clone() }]).await,
            pairs(&[("fields", "required")])
        );
        assert_eq!(refused(vec![primary(left_out)]).await, pairs(&[("fields[0].isPrimary", "invalid")]));
        assert_eq!(
            refused(vec![primary(choice(0)), primary(choice(1))]).await,
            pairs(&[("fields[1].isPrimary", "duplicate")])
        );
    }
}

#[tokio::test]
async fn no_database_is_made_where_a_row_is_wrong() {
    for bench in benches().await {
        let number = FieldChoice { kind: Some(PropertyType::Number), ..choice(1) };
        let csv = "Name,Points\na,1\nb,many\n";
        let looked = make(&bench, csv, vec![number.clone()], true).await.unwrap();
        assert_eq!(places(&looked.imported), [(3, "Points", "wrong_type")]);
        let refused = violations(make(&bench, csv, vec![number], false).await);
        assert_eq!(refused, pairs(&[("rows[3].Points", "wrong_type")]));
        let databases = crate::databases::Databases::new(bench.context.clone());
        let listed =
            databases.list(&bench.caller, None, PageRequest::new(PAGES, 0, "").unwrap()).await.unwrap();
        assert_eq!(listed.total, 0);
    }
}
