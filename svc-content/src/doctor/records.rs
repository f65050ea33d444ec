//! The invariants that only the rules can check: consistent schemas, and records whose title, searched text and cells
//! follow from their values.

use std::collections::HashMap;

use cairn_chassis::doctor::{Finding, Progress, Repair, Report};
use cairn_chassis::sql::Tx;
use cairn_proto::ids::{PropertyId, RecordId, WorkspaceId};

use crate::model::{Cell, Database, DatabaseQuery, PropertyType, Record, cells, searched};
use crate::store::doctor::{self as stored, StoredRecord};
use crate::{Error, store};

pub(super) const SCHEMA_RULE: &str = "the properties and views of a database fit together";
pub(super) const RECORD_RULE: &str = "a record's title, text and cells are those of its values";
pub(super) const VERSION_RULE: &str = "a record is what its newest version holds";
pub(super) const QUERY_RULE: &str = "the query of a member can be read";

/// The batch size of databases and records.
const BATCH: i64 = 200;

pub(super) async fn examine(tx: &mut Tx, progress: Progress<'_>) -> Result<Vec<Finding>, Error> {
    progress(QUERY_RULE);
    let mut findings = examine_queries(tx).await?;
    progress(SCHEMA_RULE);
    progress(RECORD_RULE);
    let mut after = (String::new(), String::new());
    loop {
        let databases = stored::databases(tx, (&after.0, &after.1), BATCH).await?;
        let Some(last) = databases.last() else { break };
        after = (last.workspace.to_string(), last.id.clone());
        for one in databases {
            let subject = format!("workspace {} database {}", one.workspace, one.id);
            let Some(database) = one.read() else {
                findings.push(Finding { rule: SCHEMA_RULE, subject: format!("{subject}: cannot be read") });
                continue;
            };
            let faults = faults(&database).into_iter();
            findings.extend(
                faults.map(|fault| Finding { rule: SCHEMA_RULE, subject: format!("{subject}: {fault}") }),
            );
            findings.extend(examine_records(tx, one.workspace, &database).await?);
        }
    }
    Ok(findings)
}

async fn examine_queries(tx: &mut Tx) -> Result<Vec<Finding>, Error> {
    let queries = stored::queries(tx).await?.into_iter();
    let unread = queries.filter(|(_, query)| serde_json::from_str::<DatabaseQuery>(query).is_err());
    Ok(unread.map(|(subject, _)| Finding { rule: QUERY_RULE, subject }).collect())
}

/// Violations of the rules by the properties and views of a database.
fn faults(database: &Database) -> Vec<String> {
    let mut faults = Vec::new();
    let mut ids: Vec<PropertyId> = database.properties.iter().map(|property| property.id).collect();
    ids.sort();
    if ids.windows(2).any(|pair| matches!(pair, [one, other] if one == other)) {
        faults.push("two properties have one id".to_owned());
    }
    let primary: Vec<_> = database.properties.iter().filter(|property| property.is_primary).collect();
    if !matches!(primary.as_slice(), [only] if only.kind == PropertyType::Text) {
        faults.push(format!("{} primary properties instead of one text", primary.len()));
    }
    for property in &database.properties {
        let config = &property.config;
        let has_relation = config.relation_database_id.is_some();
        if has_relation != (property.kind == PropertyType::Relation)
            || (!config.options.is_empty() && !property.kind.has_options())
            || (config.multiple && !property.kind.is_reference())
        {
            faults.push(format!("the settings of property {} are not those of its type", property.id));
        }
        let mut options: Vec<&str> = config.options.iter().map(|option| option.id.as_str()).collect();
        options.sort_unstable();
        if options.windows(2).any(|pair| matches!(pair, [one, other] if one == other)) {
            faults.push(format!("two options of property {} have one id", property.id));
        }
    }
    let defaults = database.views.iter().filter(|view| view.is_default).count();
    if defaults != 1 {
        faults.push(format!("{defaults} default views instead of one"));
    }
    for view in &database.views {
        let filters = view.filters.iter().filter_map(|filter| filter.field_id.parse().ok());
        let sorts = view.sorts.iter().map(|sort| sort.field_id);
        let mut named = filters.chain(sorts).chain(view.hidden_field_ids.iter().copied());
        if named.any(|id| database.property(id).is_none()) {
            faults.push(format!("view {} names a property that there is not", view.id));
        }
    }
    faults
}

async fn examine_records(
    tx: &mut Tx,
    workspace: WorkspaceId,
    database: &Database,
) -> Result<Vec<Finding>, Error> {
    let faulty = faulty_records(tx, workspace, database).await?.into_iter();
    let finding = |(one, fault): (StoredRecord, &str)| Finding {
        rule: RECORD_RULE,
        subject: format!("workspace {workspace} record {}: {fault}", one.id),
    };
    Ok(faulty.map(finding).collect())
}

/// Records that disagree with their values, each with a description.
async fn faulty_records(
    tx: &mut Tx,
    workspace: WorkspaceId,
    database: &Database,
) -> Result<Vec<(StoredRecord, &'static str)>, Error> {
    let mut faulty = Vec::new();
    let mut after = String::new();
    loop {
        let page = stored::records(tx, workspace, database.id, &after, BATCH).await?;
        let Some(last) = page.last() else { break };
        after.clone_from(&last.id);
        let ids: Vec<&str> = page.iter().map(|one| one.id.as_str()).collect();
        let mut by_record: HashMap<RecordId, Vec<Cell>> = HashMap::new();
        for (id, cell) in stored::cells(tx, workspace, &ids).await? {
            by_record.entry(id).or_default().push(cell);
        }
        for one in page {
            if let Some(fault) = fault(database, &one, &mut by_record) {
                faulty.push((one, fault));
            }
        }
    }
    Ok(faulty)
}

/// Rebuilds the titles, searched texts and cells of records from their values.
pub(super) async fn mend(tx: &mut Tx, report: &mut Report) -> Result<(), Error> {
    let mut after = (String::new(), String::new());
    loop {
        let databases = stored::databases(tx, (&after.0, &after.1), BATCH).await?;
        let Some(last) = databases.last() else { return Ok(()) };
        after = (last.workspace.to_string(), last.id.clone());
        for one in databases {
            // Nothing can be derived from an inconsistent schema.
            let Some(database) = one.read().filter(|database| faults(database).is_empty()) else { continue };
            for (faulty, _) in faulty_records(tx, one.workspace, &database).await? {
                let Some(record) = faulty.read() else {
                    mend_values(tx, one.workspace, &faulty, report).await?;
                    continue;
                };
                let text = searched(&cells(&database, &record.values));
                let title = database.title_of(&record.values);
                stored::set_derived(tx, one.workspace, record.id, &title, &text).await?;
                store::cells::delete_of_record(tx, one.workspace, record.id).await?;
                store::cells::insert(tx, &database, &record).await?;
                report.add(Repair {
                    rule: RECORD_RULE.into(),
                    subject: format!("workspace {} record {}", one.workspace, record.id),
                    does: "they are made anew from its values".into(),
                    is_loss: false,
                });
            }
        }
    }
}

/// Replaces values that cannot be parsed by those of the newest version, if there is one.
async fn mend_values(
    tx: &mut Tx,
    workspace: WorkspaceId,
    faulty: &StoredRecord,
    report: &mut Report,
) -> Result<(), Error> {
    if stored::values_of_version(tx, workspace, &faulty.id).await? {
        report.add(Repair {
            rule: RECORD_RULE.into(),
            subject: format!("workspace {workspace} record {}", faulty.id),
            does: "its values are those of its newest version".into(),
            is_loss: false,
        });
    }
    Ok(())
}

/// Where a record and its newest version differ, either may be damaged: both are kept, as two versions. A state that
/// cannot be parsed is not kept.
pub(super) async fn mend_versions(tx: &mut Tx, report: &mut Report) -> Result<(), Error> {
    for record in stored::diverged(tx).await? {
        let does = match (record.is_readable(), record.is_newest_readable()) {
            (true, true) => {
                stored::insert_as_newest(tx, &record).await?;
                "what it is now is a new version, by nobody known; the one before it stays as it was"
            }
            (false, true) => {
                stored::reset_to_newest(tx, &record).await?;
                "its values are those of its newest version"
            }
            // Another check copies the record into the version.
            (_, false) => continue,
        };
        report.add(Repair {
            rule: VERSION_RULE.into(),
            subject: format!("workspace {} record {}", record.workspace_id, record.id),
            does: does.into(),
            is_loss: false,
        });
    }
    Ok(())
}

fn fault(
    database: &Database,
    one: &StoredRecord,
    cells_of: &mut HashMap<RecordId, Vec<Cell>>,
) -> Option<&'static str> {
    let Some(Record { id, values, .. }) = one.read() else { return Some("cannot be read") };
    if one.title != database.title_of(&values) {
        return Some("the title is another");
    }
    let expected = cells(database, &values);
    // The searched text may still contain the value of a deleted property.
    if !searched(&expected).split('\n').all(|line| one.searched.contains(line)) {
        return Some("the text to search lacks a value");
    }
    let found = cells_of.remove(&id).unwrap_or_default();
    let is_there = |cell: &Cell| found.iter().any(|other| is_same(cell, other));
    if found.len() != expected.len() || !expected.iter().all(is_there) {
        return Some("the cells are others");
    }
    None
}

/// Numbers pass through the decimal parser of the engine, so the last bit may differ.
fn is_same(one: &Cell, other: &Cell) -> bool {
    let is_near = match (one.number, other.number) {
        (Some(a), Some(b)) => (a - b).abs() <= a.abs().max(b.abs()) * 1e-14,
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    };
    is_near && Cell { number: None, ..one.clone() } == Cell { number: None, ..other.clone() }
}
