//! What the rules answer against what the model holds.

use cairn_chassis::feed::Op;
use cairn_proto::domain::SortOrder;
use serde_json::json;

use super::super::tables::tree;
use super::*;
use crate::databases::Databases;
use crate::databases::views::SortDraft;
use crate::model::MemberTarget;
use crate::records::{RecordListRequest, Records};

pub(super) async fn compare(bench: &Bench, caller: &Caller, model: &Model) {
    tables(bench, caller, model).await;
    memories(bench, caller, model).await;
    trash(bench, caller, model).await;
    feed(bench, caller, model).await;
}

/// A kept value without the options that are no more.
pub(super) fn kept_of(field: &Field, value: &Value) -> Value {
    let Some(elements) = value.as_array() else { return value.clone() };
    let is_known = |id: &&Value| field.options.iter().any(|(known, _)| id.as_str() == Some(known));
    Value::from_iter(elements.iter().filter(is_known).cloned())
}

/// Values as a caller sees them.
fn shown(table: &TableModel, values: &Values) -> Values {
    let mut shown = Values::new();
    for field in &table.fields {
        let Some(value) = values.get(&field.id.to_string()) else { continue };
        let value = kept_of(field, value);
        let named = |id: &Value| {
            let found = field.options.iter().find(|(known, _)| id.as_str() == Some(known));
            Value::from(found.unwrap().1.clone())
        };
        let value = match value.as_array() {
            Some(elements) => Value::from_iter(elements.iter().map(named)),
            None => value,
        };
        shown.insert(field.id.to_string(), value);
    }
    shown
}

async fn tables(bench: &Bench, caller: &Caller, model: &Model) {
    let (databases, records) = (Databases::new(bench.context.clone()), Records::new(bench.context.clone()));
    let mut listed: Vec<_> = databases.list(caller, None, first_page()).await.unwrap().items;
    listed.sort_by_key(|database| database.id);
    let mut live: Vec<_> = model.tables.values().filter(|table| table.deleted.is_none()).collect();
    live.sort_by_key(|table| table.id);
    assert_eq!(listed.len(), live.len());
    for (database, table) in listed.iter().zip(live) {
        assert_eq!((database.id, database.folder_id), (table.id, model.folder_id(table.folder)));
        let held = model.records.values().filter(|record| model.tables[&record.table].id == table.id);
        let mut held: Vec<_> = held.filter(|record| record.deleted.is_none()).collect();
        held.sort_by_key(|record| record.id);
        assert_eq!(database.record_count, held.len() as u64);
        let asked = RecordListRequest { limit: 200, ..RecordListRequest::default() };
        let page = records.list(caller, &table.id.to_string(), asked).await.unwrap();
        let found: Vec<_> = page
            .records
            .iter()
            .map(|shown| (shown.id, shown.version, serde_json::from_str(&shown.values).unwrap()))
            .collect();
        let expected: Vec<_> = held
            .iter()
            .map(|record| {
                (record.id, record.versions.len() as u64, shown(table, record.versions.last().unwrap()))
            })
            .collect();
        assert_eq!(found, expected, "{}", bench.engine());
        for field in &table.fields {
            query(bench, caller, table, field, &held).await;
        }
    }
    let trashed = databases.list_trashed(caller, first_page()).await.unwrap();
    let expected = model.tables.values().filter(|table| table.deleted.is_some()).count();
    assert_eq!(trashed.items.len(), expected);
}

/// Where a record stands when sorted by a field: what is smaller comes first.
fn sort_key(field: &Field, record: &RecordModel) -> Option<f64> {
    let value = record.versions.last().unwrap().get(&field.id.to_string())?;
    match field.kind {
        FieldKind::Number => value.as_f64(),
        FieldKind::Options => {
            let kept = kept_of(field, value);
            let first = kept.as_array()?.first()?.clone();
            let place = field.options.iter().position(|(id, _)| first.as_str() == Some(id))?;
            Some(f64::from(u32::try_from(place).unwrap()))
        }
        // Texts of the model differ in their last digit.
        FieldKind::Text => value.as_str()?.chars().last()?.to_digit(10).map(f64::from),
    }
}

async fn query(bench: &Bench, caller: &Caller, table: &TableModel, field: &Field, held: &[&RecordModel]) {
    let records = Records::new(bench.context.clone());
    let list = async |ask: RecordListRequest| {
        let ask = RecordListRequest { limit: 200, ..ask };
        let page = records.list(caller, &table.id.to_string(), ask).await.unwrap();
        assert_eq!(page.total, page.records.len() as u64);
        page.records.into_iter().map(|shown| shown.id).collect::<Vec<_>>()
    };
    let sort = SortDraft { field_id: field.id.to_string(), order: SortOrder::Asc };
    let sorted = list(RecordListRequest { sorts: vec![sort], ..RecordListRequest::default() }).await;
    let mut expected: Vec<_> = held.iter().map(|record| (sort_key(field, record), record.id)).collect();
    expected.sort_by(|(a, one), (b, other)| {
        let (a, b) = (a.unwrap_or(f64::INFINITY), b.unwrap_or(f64::INFINITY));
        a.total_cmp(&b).then(one.cmp(other))
    });
    assert_eq!(sorted, expected.into_iter().map(|(_, id)| id).collect::<Vec<_>>(), "{}", bench.engine());

    let is_empty = json!({"fieldId": field.id, "operator": "is_empty"});
    let mut found =
        list(RecordListRequest { filters: vec![tree(&is_empty)], ..RecordListRequest::default() }).await;
    found.sort();
    let without = held.iter().filter(|record| sort_key(field, record).is_none());
    assert_eq!(found, without.map(|record| record.id).collect::<Vec<_>>(), "{}", bench.engine());

    if field.kind == FieldKind::Number {
        for record in held {
            let Some(number) = sort_key(field, record) else { continue };
            for operator in ["equals", "gt", "lte"] {
                let holds = |other: f64| match operator {
                    "equals" => other == number,
                    "gt" => other > number,
                    _ => other <= number,
                };
                let condition = json!({"fieldId": field.id, "operator": operator, "value": number});
                let mut found = list(RecordListRequest {
                    filters: vec![tree(&condition)],
                    ..RecordListRequest::default()
                })
                .await;
                found.sort();
                let fitting = held.iter().filter(|other| sort_key(field, other).is_some_and(holds));
                let fitting: Vec<_> = fitting.map(|other| other.id).collect();
                assert_eq!(found, fitting, "{} {operator} {number}", bench.engine());
            }
        }
    }
}

async fn memories(bench: &Bench, caller: &Caller, model: &Model) {
    let mut listed = bench.memories().list(caller, first_page()).await.unwrap().items;
    listed.sort_by_key(|memory| memory.id);
    let mut expected: Vec<_> = model.memories.values().collect();
    expected.sort_by_key(|memory| memory.id);
    assert_eq!(listed.len(), expected.len());
    for (memory, known) in listed.iter().zip(expected) {
        assert_eq!(
            (memory.id, memory.name.as_str(), memory.slug.as_str(), memory.version),
            (known.id, NAMES[known.name], known.slug.as_str(), known.version)
        );
        let found = memory.members.iter().map(|member| {
            let kind =
                if matches!(member.target, MemberTarget::Folder(_)) { Kind::Folder } else { Kind::Database };
            (member.id, kind, member.target.id().to_string(), member.position, member.is_live)
        });
        let wanted = (0_u32..).zip(&known.members).map(|(position, (id, kind, target))| {
            (*id, *kind, target.clone(), position, model.lives(*kind, target))
        });
        assert!(found.eq(wanted), "{} {memory:?} {known:?}", bench.engine());
    }
}

async fn trash(bench: &Bench, caller: &Caller, model: &Model) {
    let listed = bench.trash().list(caller, None, first_page()).await.unwrap().items;
    let found: Vec<_> =
        listed.into_iter().map(|listed| (listed.deletion.kind, listed.deletion.item_id)).collect();
    let expected: Vec<_> =
        model.trash.values().rev().map(|(kind, number)| (*kind, model.item(*kind, *number))).collect();
    assert_eq!(found, expected, "{}", bench.engine());
}

/// Whoever follows the feed ends up with exactly the live records of live databases.
async fn feed(bench: &Bench, caller: &Caller, model: &Model) {
    let mut indexed = std::collections::BTreeSet::new();
    let mut after = 0;
    loop {
        let page = bench.context.feed.read(caller.workspace, after, 0).await.unwrap();
        let Some(last) = page.changes.last() else { break };
        after = last.position;
        for change in page.changes.into_iter().filter(|change| change.entry.kind == Kind::Record) {
            match change.entry.op {
                Op::Upsert => indexed.insert(change.entry.item_id),
                _ => indexed.remove(&change.entry.item_id),
            };
        }
    }
    for record in model.records.values() {
        let is_live = record.deleted.is_none() && model.is_live(record.table);
        let is_indexed = indexed.remove(&record.id.to_string());
        // The owner answers for a record while its database is in trash.
        let may_linger = record.deleted.is_none() && !model.is_live(record.table);
        assert!(is_indexed == is_live || may_linger, "{} {record:?}", bench.engine());
    }
    assert!(indexed.is_empty(), "{} {indexed:?}", bench.engine());
}
