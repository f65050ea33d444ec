//! Pages of records, by columns and by the engine alone, against a model that filters, sorts and counts them.

use std::cmp::Ordering as Order;

use cairn_proto::domain::SortOrder;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use super::tables::{Table, tree};
use super::*;
use crate::databases::views::SortDraft;
use crate::model::{Listed, fold};
use crate::records::{RecordListRequest, Records};

const RECORDS: usize = 40;
const QUESTIONS: u32 = 60;
/// Longer texts are in order by their beginning only.
const SORTED_CHARS: usize = 200;
const OPTIONS: [&str; 3] = ["Todo", "Doing", "Finished"];
const NAMES: [&str; 8] = ["Ada", "ada b", "Åse", "100%_done", "x_y", "STRASSE 7", "straße", "\\ zz 7"];
const FIELDS: [&str; 5] = ["Name", "Points", "Done", "Status", "Tags"];

/// A record as a caller reads it back.
#[derive(Debug, Clone)]
struct Row {
    id: String,
    at: i64,
    values: Value,
}

#[derive(Debug, Clone)]
struct Question {
    filter: Value,
    sorts: Vec<(&'static str, bool)>,
    search: String,
    limit: u32,
    offset: u64,
    wanted: usize,
}

fn values() -> impl Strategy<Value = Value> {
    let option = || prop::sample::select(OPTIONS.to_vec());
    let name = prop_oneof![
        6 => prop::sample::select(NAMES.to_vec()).prop_map(Value::from),
        1 => Just(Value::Null),
        1 => (190_usize..210).prop_map(|length| Value::from(format!("{}q", "a".repeat(length)))),
    ];
    let points =
        prop_oneof![4 => (-3..9_i32).prop_map(|n| json!(f64::from(n) / 2.0)), 1 => Just(Value::Null)];
    let done = prop::option::of(any::<bool>());
    let tags = prop::sample::subsequence(OPTIONS.to_vec(), 0..=3).prop_shuffle();
    (name, points, done, prop::option::of(option()), tags).prop_map(|(name, points, done, status, tags)| {
        json!({"Name": name, "Points": points, "Done": done, "Status": status, "Tags": tags})
    })
}

fn leaf() -> impl Strategy<Value = Value> {
    let is = |field: &'static str, operator: &'static str, value: Value| json!({"fieldId": field, "operator": operator, "value": value});
    let number = || (-3..9_i32).prop_map(|n| json!(f64::from(n) / 2.0));
    let texts = prop::sample::select(NAMES.to_vec());
    let option = prop::sample::select(OPTIONS.to_vec());
    prop_oneof![
        (texts, prop::sample::select(vec!["equals", "not_equals", "contains"]))
            .prop_map(move |(text, operator)| is("Name", operator, text.into())),
        prop::sample::select(vec!["a", "%", "_", "\\", "ss", "q"]).prop_map(move |part| is(
            "Name",
            "contains",
            part.into()
        )),
        (number(), prop::sample::select(vec!["equals", "not_equals", "gt", "gte", "lt", "lte"]))
            .prop_map(move |(number, operator)| is("Points", operator, number)),
        prop::collection::vec(number(), 1..4).prop_map(move |numbers| is("Points", "in", numbers.into())),
        (any::<bool>(), prop::sample::select(vec!["equals", "not_equals"]))
            .prop_map(move |(done, operator)| is("Done", operator, done.into())),
        (
            option,
            prop::sample::select(vec!["Status", "Tags"]),
            prop::sample::select(vec!["equals", "not_equals"])
        )
            .prop_map(move |(option, field, operator)| is(field, operator, option.into())),
        (prop::sample::select(FIELDS.to_vec()), prop::sample::select(vec!["is_empty", "is_not_empty"]))
            .prop_map(|(field, operator)| json!({"fieldId": field, "operator": operator})),
    ]
}

fn filter() -> impl Strategy<Value = Value> {
    let tree = leaf().prop_recursive(2, 8, 3, |inner| {
        (any::<bool>(), prop::collection::vec(inner, 1..4)).prop_map(|(is_all, branches)| {
            if is_all { json!({"and": branches}) } else { json!({"or": branches}) }
        })
    });
    prop_oneof![1 => Just(json!({})), 4 => tree]
}

fn question() -> impl Strategy<Value = Question> {
    let sorts = prop::sample::subsequence(FIELDS.to_vec(), 0..=3).prop_shuffle();
    let sorts = (sorts, prop::collection::vec(any::<bool>(), 3))
        .prop_map(|(fields, down)| fields.into_iter().zip(down).collect::<Vec<_>>());
    let words =
        vec!["", "", "", "ADA", "ada b", "å", "%", "_", "7 ss", "todo", "ing", "1.5", "\\", "q", "none"];
    (filter(), sorts, prop::sample::select(words), 1..12_u32, 0..45_u64, 0..RECORDS).prop_map(
        |(filter, sorts, search, limit, offset, wanted)| Question {
            filter,
            sorts,
            search: search.to_owned(),
            limit,
            offset,
            wanted,
        },
    )
}

/// The elements of a field, as they are compared.
fn keys(row: &Row, field: &str) -> Vec<Key> {
    let value = &row.values[field];
    let one = || if value.is_null() { Vec::new() } else { vec![value.clone()] };
    let elements = value.as_array().cloned().unwrap_or_else(one);
    let key = |value: &Value| match field {
        "Name" => Key::Text(fold(value.as_str().unwrap())),
        "Points" => Key::Number(value.as_f64().unwrap()),
        "Done" => Key::Number(if value.as_bool().unwrap() { 1.0 } else { 0.0 }),
        _ => Key::Number(OPTIONS.iter().position(|name| Some(*name) == value.as_str()).unwrap() as f64),
    };
    elements.iter().map(key).collect()
}

#[derive(Debug, Clone, PartialEq, PartialOrd)]
enum Key {
    Text(String),
    Number(f64),
}

fn holds(filter: &Value, row: &Row) -> bool {
    if let Some(branches) = filter["and"].as_array() {
        return branches.iter().all(|branch| holds(branch, row));
    }
    if let Some(branches) = filter["or"].as_array() {
        return branches.iter().any(|branch| holds(branch, row));
    }
    let Some(field) = filter["fieldId"].as_str() else { return true };
    let found = keys(row, field);
    let value = &filter["value"];
    let given = value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
    let as_key = |value: &Value| {
        let like = Row { id: String::new(), at: 0, values: json!({field: value}) };
        keys(&like, field).pop()
    };
    let wanted: Vec<Key> = given.iter().filter_map(as_key).collect();
    let any =
        |test: &dyn Fn(&Key, &Key) -> bool| found.iter().any(|key| wanted.iter().any(|one| test(key, one)));
    match filter["operator"].as_str().unwrap() {
        "equals" | "in" => any(&|key, one| key == one),
        "not_equals" => !any(&|key, one| key == one),
        "contains" => any(&|key, one| match (key, one) {
            (Key::Text(text), Key::Text(part)) => text.contains(part.as_str()),
            _ => panic!("not a text"),
        }),
        "gt" => any(&|key, one| key > one),
        "gte" => any(&|key, one| key >= one),
        "lt" => any(&|key, one| key < one),
        "lte" => any(&|key, one| key <= one),
        "is_empty" => found.is_empty(),
        "is_not_empty" => !found.is_empty(),
        other => panic!("{other}"),
    }
}

fn is_found(search: &str, row: &Row) -> bool {
    let mut texts = Vec::new();
    for field in ["Name", "Points", "Status", "Tags"] {
        match &row.values[field] {
            Value::Null => {}
            Value::Array(elements) => texts.extend(elements.iter().map(|one| fold(one.as_str().unwrap()))),
            Value::String(text) => texts.push(fold(text)),
            other @ (Value::Bool(_) | Value::Number(_) | Value::Object(_)) => texts.push(other.to_string()),
        }
    }
    fold(search).split_whitespace().all(|word| texts.iter().any(|text| text.contains(word)))
}

fn sort_key(row: &Row, field: &str) -> Option<Key> {
    keys(row, field).into_iter().next().map(|key| match key {
        Key::Text(text) => Key::Text(text.chars().take(SORTED_CHARS).collect()),
        Key::Number(number) => Key::Number(number),
    })
}

fn compare(one: &Row, other: &Row, sorts: &[(&str, bool)]) -> Order {
    let mut is_down = false;
    let mut has_first = false;
    for (place, (field, down)) in sorts.iter().enumerate() {
        let (a, b) = (sort_key(one, field), sort_key(other, field));
        if place == 0 {
            (is_down, has_first) = (*down, a.is_some());
        }
        let order = match (a, b) {
            (None, None) => Order::Equal,
            (None, Some(_)) => Order::Greater,
            (Some(_), None) => Order::Less,
            (Some(a), Some(b)) if *down => b.partial_cmp(&a).unwrap(),
            (Some(a), Some(b)) => a.partial_cmp(&b).unwrap(),
        };
        if order != Order::Equal {
            return order;
        }
    }
    match (has_first, is_down) {
        (false, _) => (one.at, &one.id).cmp(&(other.at, &other.id)),
        (true, false) => one.id.cmp(&other.id),
        (true, true) => other.id.cmp(&one.id),
    }
}

fn row(table: &Table, shown: &Listed) -> Row {
    let read: Value = serde_json::from_str(&shown.values).unwrap();
    let values = FIELDS.iter().map(|field| {
        let value = read.get(table.field(field)).cloned();
        ((*field).to_owned(), value.unwrap_or_default())
    });
    let values = Value::Object(values.collect());
    Row { id: shown.id.to_string(), at: shown.created_at.as_micros(), values }
}

async fn answer(bench: &Bench, table: &Table, rows: &[Row], asked: &Question) {
    let mut expected: Vec<&Row> = rows.iter().collect();
    expected.retain(|row| holds(&asked.filter, row) && is_found(&asked.search, row));
    expected.sort_by(|one, other| compare(one, other, &asked.sorts));
    let sorts = asked.sorts.iter().map(|(field, is_down)| SortDraft {
        field_id: (*field).to_owned(),
        order: if *is_down { SortOrder::Desc } else { SortOrder::Asc },
    });
    let ask = RecordListRequest {
        filters: vec![tree(&asked.filter)],
        sorts: sorts.collect(),
        search: asked.search.clone(),
        limit: asked.limit,
        offset: asked.offset,
        allow_names: true,
        ..RecordListRequest::default()
    };
    let engine = Records::new(Context { columns: SnapshotCache::new(0), ..bench.context.clone() });
    for records in [&table.records, &engine] {
        answer_by(records, bench, table, &expected, (rows, asked, &ask)).await;
    }
}

async fn answer_by(
    records: &Records,
    bench: &Bench,
    table: &Table,
    expected: &[&Row],
    (rows, asked, ask): (&[Row], &Question, &RecordListRequest),
) {
    let what = format!("{} {asked:?}", bench.engine());
    let listed = records.list(&bench.caller, &table.id(), ask.clone()).await.unwrap();
    let ids: Vec<String> = listed.records.iter().map(|shown| shown.id.to_string()).collect();
    let page = expected.iter().skip(asked.offset as usize).take(asked.limit as usize);
    assert_eq!(ids, page.map(|row| row.id.clone()).collect::<Vec<_>>(), "{what}");
    assert_eq!(listed.total, expected.len() as u64, "{what}");

    let wanted = &rows[asked.wanted].id;
    let place = expected.iter().position(|row| row.id == *wanted);
    let around = RecordListRequest { record_id: Some(wanted.clone()), ..ask.clone() };
    let found = records.list(&bench.caller, &table.id(), around).await;
    match place {
        None => assert!(matches!(&found, Err(Error::LeftOut(id)) if id == wanted), "{what} record {wanted}"),
        Some(place) => {
            let limit = u64::from(asked.limit);
            assert_eq!(found.unwrap().offset, place as u64 / limit * limit, "{what} record {wanted}");
        }
    }
}

#[test]
fn a_page_is_what_the_model_says() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for bench in runtime.block_on(benches()) {
        let config = || Config { failure_persistence: None, ..Config::default() };
        let mut runner = TestRunner::new(Config { cases: 2, ..config() });
        let result = runner.run(&prop::collection::vec(values(), RECORDS), |records| {
            let (table, rows) = runtime.block_on(async {
                let table = Table::new(&bench, None).await;
                let mut rows = Vec::new();
                for values in records {
                    rows.push(row(&table, &table.make(values).await.into()));
                }
                (table, rows)
            });
            let mut asking = TestRunner::new(Config { cases: QUESTIONS, ..config() });
            let answered = asking.run(&question(), |asked| {
                runtime.block_on(answer(&bench, &table, &rows, &asked));
                Ok(())
            });
            answered.map_err(|error| TestCaseError::fail(error.to_string()))
        });
        result.unwrap();
    }
}

#[test]
fn a_record_with_several_values_is_skipped_once() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for bench in runtime.block_on(benches()) {
        runtime.block_on(async {
            let table = Table::new(&bench, None).await;
            let mut rows = Vec::new();
            for _ in 0..4 {
                rows.push(row(&table, &table.make(json!({"Name": "Ada", "Tags": OPTIONS})).await.into()));
            }
            let filter = json!({"fieldId": "Tags", "operator": "is_not_empty"});
            for search in ["", "ada"] {
                let search = search.to_owned();
                let asked = Question {
                    filter: filter.clone(),
                    sorts: Vec::new(),
                    search,
                    limit: 1,
                    offset: 2,
                    wanted: 3,
                };
                answer(&bench, &table, &rows, &asked).await;
            }
        });
    }
}
