//! Damage to memories, databases, records and their trash: the doctor reports each.

use cairn_chassis::doctor::{Finding, Report};
use cairn_chassis::on_db;
use serde_json::json;

use super::memory_rules::of_file;
use super::tables::Table;
use super::*;
use crate::doctor;
use crate::memories::MemberDraft;
use crate::model::{DatabaseQuery, MemberKind};

/// One of every kind of item, and every live record in one table.
async fn fill(bench: &Bench) {
    let folder = bench.folder("f", None).await;
    let (file, body) = (bench.file("1", None).await, bench.file("2", Some(folder.id)).await);
    let table = Table::new(bench, Some(folder.id)).await;
    table.fill().await;
    let made = table.make(json!({"Name": "E", "File": file.id, "Tags": ["Todo", "Doing"]})).await;
    let id = made.record.id.to_string();
    table.change(&id, json!({"Points": 0.1, "Name": "long ".repeat(100)})).await.unwrap();
    let draft = crate::records::RecordDraft {
        content_file_id: Some(Some(body.id.to_string())),
        ..crate::records::RecordDraft::default()
    };
    table.records.update(&bench.caller, &table.id(), &id, draft).await.unwrap();
    let gone = table.make(json!({"Name": "gone"})).await.record.id.to_string();
    table.records.delete(&bench.caller, &table.id(), &gone).await.unwrap();
    let dead = Table::new(bench, None).await;
    dead.make(json!({"Name": "dead", "Points": 1})).await;
    let rename = crate::databases::DatabasePatch {
        name: Some("Dead".into()),
        ..crate::databases::DatabasePatch::default()
    };
    dead.databases.update(&bench.caller, &dead.id(), rename).await.unwrap();
    dead.databases.delete(&bench.caller, &dead.id()).await.unwrap();
    let asked = MemberDraft {
        kind: Some(MemberKind::Database),
        database_id: Some(table.id()),
        query: Some(DatabaseQuery::default()),
        ..MemberDraft::default()
    };
    bench.memory("first", vec![of_file(file.id), of_file(body.id), asked]).await;
    bench.memory("second", vec![]).await;
    let gone = bench.memory("gone", vec![of_file(file.id)]).await;
    bench.memories().delete(&bench.caller, &gone.slug).await.unwrap();
}

/// The findings after a damage, and those that remain after its repair; both are rolled back.
async fn found_after(bench: &Bench, damage: &str) -> (Vec<Finding>, Vec<Finding>) {
    let mut tx = bench.context.db.begin_write().await.unwrap();
    for sql in damage.split("; ") {
        let sql = sqlx::AssertSqlSafe(sql.to_owned());
        on_db!(tx, |c| sqlx::query(sql).execute(c).await.map(|_| ())).unwrap();
    }
    let found = doctor::examine_in(&mut tx, &|_| {}).await.unwrap();
    let mut report = Report::default();
    doctor::mend_in(&mut tx, None, &mut report, &|_| {}).await.unwrap();
    let left = doctor::examine_in(&mut tx, &|_| {}).await.unwrap();
    tx.rollback().await.unwrap();
    (found, left)
}

const SLUG: &str = "a slug belongs to one memory of the workspace";
const NAMED: &str = "a memory has a name, and a version from 1 on";
const PLACES: &str = "the members of a memory stand at 0, 1, 2 and so on";
const KIND: &str = "a member is of a known kind, and only a database is asked a query";
const QUERY: &str = "the query of a member can be read";
const MEMORY_FED: &str = "the feed's last word on a memory is true";
const MEMORY_TRASHED: &str = "a trashed memory carries its deletion";
const HOME: &str = "a live database stands in a live folder or the root";
const FORMER_HOME: &str = "a database in trash refers to a folder that there is";
const STEP: &str = "a database's name is one step of a path";
const DATABASE_TRASHED: &str = "a trashed database carries its deletion";
const RECORD_TRASHED: &str = "a trashed record carries its deletion";
const HOLDER: &str = "the deletion of a record names its database";
const TAKEN: &str = "a deletion counts what it took";
const DATABASE_FED: &str = "the feed's last word on a database is true";
const RECORD_FED: &str = "the feed's last word on a record is true";
const COUNTED: &str = "a database counts its live records";
const GAP: &str = "the versions of a record go from 1 to the present one";
const NEWEST: &str = "a record is what its newest version holds";
const ALIVE: &str = "only live records have cells, in their own database";
const SCHEMA: &str = "the properties and views of a database fit together";
const VALUES: &str = "a record's title, text and cells are those of its values";

const DAMAGES: &[(&str, &str)] = &[
    ("DROP INDEX memories_by_slug; UPDATE memories SET slug = 'one'", SLUG),
    ("UPDATE memories SET name = '' WHERE name = 'first'", NAMED),
    ("UPDATE memories SET version = 0 WHERE name = 'first'", NAMED),
    ("UPDATE memory_members SET position = position + 1", PLACES),
    ("UPDATE memory_members SET position = 2 WHERE position = 1", PLACES),
    ("DELETE FROM memory_members WHERE position = 1", PLACES),
    ("UPDATE memory_members SET kind = 9 WHERE position = 1", KIND),
    ("UPDATE memory_members SET query = '{}' WHERE position = 1", KIND),
    ("UPDATE memory_members SET query = '[' WHERE position = 2", QUERY),
    ("UPDATE feed_changes SET op = 2 WHERE kind = 3", MEMORY_FED),
    ("DELETE FROM memory_versions; DELETE FROM memory_members; DELETE FROM memories", MEMORY_FED),
    ("DELETE FROM trash WHERE kind = 3", MEMORY_TRASHED),
    ("UPDATE memories SET deletion_id = NULL WHERE name = 'gone'", MEMORY_TRASHED),
    ("UPDATE memories SET deleted_at = NULL, deletion_id = NULL WHERE name = 'gone'", MEMORY_TRASHED),
    ("UPDATE folders SET deleted_at = 1, deletion_id = 'x'", HOME),
    ("UPDATE databases SET folder_id = 'x' WHERE name = 'Dead'", FORMER_HOME),
    ("UPDATE databases SET name = 'a/b'", STEP),
    ("DELETE FROM trash WHERE kind = 4", DATABASE_TRASHED),
    ("UPDATE databases SET deletion_id = NULL WHERE name = 'Dead'", DATABASE_TRASHED),
    ("UPDATE databases SET deleted_at = NULL, deletion_id = NULL WHERE name = 'Dead'", DATABASE_TRASHED),
    ("DELETE FROM trash WHERE kind = 5", RECORD_TRASHED),
    ("UPDATE records SET deleted_at = NULL WHERE title = 'gone'", RECORD_TRASHED),
    ("UPDATE trash SET parent_id = NULL WHERE kind = 5", HOLDER),
    ("UPDATE trash SET items = 0", TAKEN),
    ("UPDATE feed_changes SET op = 2 WHERE kind = 4", DATABASE_FED),
    ("UPDATE feed_changes SET op = 1 WHERE kind = 4", DATABASE_FED),
    ("UPDATE feed_changes SET op = 2 WHERE kind = 5", RECORD_FED),
    ("UPDATE feed_changes SET op = 1 WHERE kind = 5", RECORD_FED),
    (
        "DELETE FROM record_versions WHERE record_id IN (SELECT id FROM records WHERE title = 'A'); \
         DELETE FROM record_cells WHERE record_id IN (SELECT id FROM records WHERE title = 'A'); \
         DELETE FROM records WHERE title = 'A'",
        RECORD_FED,
    ),
    ("UPDATE record_counts SET live = live + 1", COUNTED),
    ("INSERT INTO record_counts (workspace_id, database_id, live) VALUES ('w', 'd', 0)", COUNTED),
    ("DELETE FROM record_versions WHERE version = 2", GAP),
    ("DELETE FROM record_versions WHERE version = 3", GAP),
    ("DELETE FROM record_versions", GAP),
    ("UPDATE records SET version = version + 1", GAP),
    ("UPDATE record_versions SET field_values = '{}'", NEWEST),
    ("UPDATE records SET content_file_id = NULL", NEWEST),
    ("UPDATE record_cells SET database_id = 'x'", ALIVE),
    (
        "INSERT INTO record_cells (workspace_id, record_id, property_id, place, database_id, number_key) \
         SELECT workspace_id, id, 'p', 0, database_id, 1 FROM records WHERE title = 'gone'",
        ALIVE,
    ),
    ("UPDATE databases SET properties = '[]'", SCHEMA),
    ("UPDATE databases SET properties = '{'", SCHEMA),
    (
        "UPDATE databases SET properties = REPLACE(properties, '\"is_primary\":true', '\"is_primary\":false')",
        SCHEMA,
    ),
    (
        "UPDATE databases SET properties = REPLACE(properties, '\"is_primary\":false', '\"is_primary\":true')",
        SCHEMA,
    ),
    (
        "UPDATE databases SET properties = REPLACE(properties, '\"multiple\":false', '\"multiple\":true')",
        SCHEMA,
    ),
    ("UPDATE databases SET properties = REPLACE(properties, '\"select\"', '\"relation\"')", SCHEMA),
    ("UPDATE databases SET views = '[]'", SCHEMA),
    (
        "UPDATE databases SET views = REPLACE(views, '\"hidden_field_ids\":[]', \
         '\"hidden_field_ids\":[\"0199c0de-0000-7000-8000-000000000001\"]')",
        SCHEMA,
    ),
    ("UPDATE records SET title = 'other' WHERE title = 'A'", VALUES),
    ("UPDATE records SET searched = '' WHERE title = 'A'", VALUES),
    ("UPDATE records SET field_values = '[]' WHERE title = 'A'", VALUES),
    ("DELETE FROM record_cells WHERE number_key = 10", VALUES),
    ("UPDATE record_cells SET number_key = 11 WHERE number_key = 10", VALUES),
    ("UPDATE record_cells SET text_key = 'other' WHERE text_key = 'a'", VALUES),
    ("UPDATE record_cells SET rest = NULL WHERE rest LIKE 'long %'", VALUES),
    ("UPDATE record_cells SET target_id = NULL WHERE target_id IS NOT NULL", VALUES),
    ("UPDATE record_cells SET place = 7 WHERE place = 1", VALUES),
];

#[tokio::test]
async fn what_the_rules_made_of_records_and_memories_is_sound() {
    for bench in benches().await {
        fill(&bench).await;
        assert_eq!(bench.wrong().await, [], "{}", bench.engine());
    }
}

#[tokio::test]
async fn every_damage_of_records_and_memories_is_named() {
    for bench in benches().await {
        fill(&bench).await;
        for (damage, rule) in DAMAGES {
            let (found, left) = found_after(&bench, damage).await;
            let named = found.iter().any(|finding| finding.rule == *rule);
            assert!(named, "{} {damage}: {found:?}", bench.engine());
            // Records are not repaired while their schema is inconsistent.
            let for_people: &[&str] = if *rule == SCHEMA { &[SCHEMA, VALUES] } else { &[QUERY] };
            let left: Vec<_> = left.iter().filter(|finding| !for_people.contains(&finding.rule)).collect();
            assert!(left.is_empty(), "{} {damage}: {left:?}", bench.engine());
        }
        assert_eq!(bench.wrong().await, [], "{}", bench.engine());
    }
}

#[tokio::test]
async fn what_a_record_is_and_what_its_newest_version_holds_both_stay() {
    for bench in benches().await {
        let table = Table::new(&bench, None).await;
        table.make(json!({"Name": "okapi"})).await;
        bench.break_by("UPDATE record_versions SET field_values = '{}'").await;
        assert!(!bench.mend().await, "{}: nothing is lost", bench.engine());
        assert_eq!(bench.wrong().await, [], "{}", bench.engine());
        let mut tx = bench.context.db.begin_read().await.unwrap();
        let sql = "SELECT field_values FROM record_versions ORDER BY version";
        let kept: Vec<(String,)> = on_db!(tx, |c| sqlx::query_as(sql).fetch_all(c).await).unwrap();
        tx.rollback().await.unwrap();
        assert_eq!(kept.len(), 2, "{}", bench.engine());
        assert_eq!(kept[0].0, "{}", "{}", bench.engine());
        assert!(kept[1].0.contains("okapi"), "{}: {kept:?}", bench.engine());
    }
}

#[tokio::test]
async fn values_that_cannot_be_read_take_nothing_from_the_version_that_can() {
    for bench in benches().await {
        let table = Table::new(&bench, None).await;
        let gone = table.make(json!({"Name": "okapi"})).await.record.id.to_string();
        table.records.delete(&bench.caller, &table.id(), &gone).await.unwrap();
        bench.break_by("UPDATE records SET field_values = '['").await;
        bench.mend().await;
        assert_eq!(bench.wrong().await, [], "{}", bench.engine());
        let mut tx = bench.context.db.begin_read().await.unwrap();
        let sql = "SELECT field_values FROM records";
        let kept: Vec<(String,)> = on_db!(tx, |c| sqlx::query_as(sql).fetch_all(c).await).unwrap();
        tx.rollback().await.unwrap();
        assert!(kept[0].0.contains("okapi"), "{}: {kept:?}", bench.engine());
    }
}

/// Foreign keys enforce these: only the remains of a damaged file violate them.
const HELD_BY_KEYS: [&str; 2] = [
    "a member and a version are of a memory that there is",
    "a record is of a database that there is, and a version of a record",
];

/// Every rule has a damage that violates it.
#[test]
fn every_rule_has_its_damage() {
    let known = doctor::checks();
    for rule in DAMAGES.iter().map(|(_, rule)| *rule).filter(|rule| ![QUERY, SCHEMA, VALUES].contains(rule)) {
        assert!(known.iter().any(|check| check.rule == rule), "{rule}");
    }
    let of_this = |rule: &str| {
        ["record", "database", "memory", "member", "slug", "deletion counts"]
            .iter()
            .any(|word| rule.contains(word))
    };
    for check in known.iter().filter(|check| of_this(check.rule) && !HELD_BY_KEYS.contains(&check.rule)) {
        assert!(DAMAGES.iter().any(|(_, rule)| *rule == check.rule), "{}", check.rule);
    }
}
