//! Importing records from a table: all rows are validated before any is written, in one transaction.

use cairn_chassis::status::Violation;
use cairn_proto::ids::{PropertyId, RecordId};
use serde_json::Map;

use super::table::{self, Table};
use super::values::ValueChanges;
use super::{MAX_TRIES, Prepared, Records, lock_unchanged, schema_in_flux};
use crate::Error;
use crate::change::Change;
use crate::checks::Checks;
use crate::databases;
use crate::model::{Database, Property, fold};
use crate::scope::Caller;

/// Rows in the preview of a table.
const PREVIEW_ROWS: usize = 10;
/// Problems that are reported.
const MAX_PROBLEMS: usize = 200;
/// Violations in an error.
const MAX_VIOLATIONS: usize = 50;

/// A table, and the mapping of its columns to properties.
#[derive(Debug, Clone, Default)]
pub(crate) struct TableDraft {
    pub(crate) csv: Vec<u8>,
    /// By column index: the property that it is mapped to, or none to skip it. Other columns are mapped by name.
    pub(crate) columns: Vec<(u32, Option<String>)>,
    /// Whether to report the result without writing anything.
    pub(crate) dry_run: bool,
}

/// A column, and the property that it is mapped to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) property: Option<PropertyId>,
}

/// A problem of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowProblem {
    /// Numbered as in spreadsheets: the header is row 1.
    pub(crate) row: u64,
    /// The name of the column; empty if the problem concerns the whole row.
    pub(crate) column: String,
    pub(crate) code: String,
    pub(crate) message: String,
}

/// The result of an import, or of its dry run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Imported {
    pub(crate) columns: Vec<Column>,
    /// Rows below the header.
    pub(crate) rows: u64,
    pub(crate) first_rows: Vec<Vec<String>>,
    /// The first problems, up to a limit.
    pub(crate) problems: Vec<RowProblem>,
    /// How many rows have problems.
    pub(crate) wrong_rows: u64,
    pub(crate) created: u64,
    /// The feed position of the import; 0 if nothing was written.
    pub(crate) position: u64,
}

impl Imported {
    /// Fails if any row has a problem.
    pub(super) fn require_valid_rows(&mut self) -> Result<(), Error> {
        if self.problems.is_empty() {
            return Ok(());
        }
        let problems = std::mem::take(&mut self.problems).into_iter().take(MAX_VIOLATIONS);
        Err(Error::Invalid(problems.map(violation).collect()))
    }
}

impl Records {
    /// Creates a record from each row of a table.
    ///
    /// # Errors
    /// `VALIDATION_ERROR` with a path such as `rows[17].Points` for each invalid cell, unless it is a dry run.
    pub(crate) async fn import(
        &self,
        caller: &Caller,
        database_id: &str,
        draft: &TableDraft,
    ) -> Result<Imported, Error> {
        let table = Table::read(&draft.csv)?;
        for _ in 0..MAX_TRIES {
            let database = databases::readable(&self.context.db, caller, database_id).await?;
            let columns = columns(&table, &database, &draft.columns)?;
            let (prepared, mut imported) = self.check_rows(caller, &database, &table, &columns).await?;
            if draft.dry_run {
                return Ok(imported);
            }
            imported.require_valid_rows()?;
            let mut change = Change::begin(&self.context, caller).await?;
            if !lock_unchanged(&mut change, &database).await? {
                change.rollback().await?;
                continue;
            }
            for prepared in prepared {
                self.create_in(&mut change, caller, &database, prepared).await?;
                imported.created += 1;
            }
            imported.position = change.commit().await?.last;
            return Ok(imported);
        }
        Err(schema_in_flux())
    }

    /// Validates all rows; returns the valid ones as records, and the report.
    pub(super) async fn check_rows(
        &self,
        caller: &Caller,
        database: &Database,
        table: &Table,
        columns: &[Column],
    ) -> Result<(Vec<Prepared>, Imported), Error> {
        let mut imported = Imported {
            columns: columns.to_vec(),
            rows: table.rows.len() as u64,
            first_rows: table
                .rows
                .iter()
                .take(PREVIEW_ROWS)
                .map(|row| row.iter().map(str::to_owned).collect())
                .collect(),
            ..Imported::default()
        };
        let mut prepared = Vec::with_capacity(table.rows.len());
        for (row, number) in table.rows.iter().zip(2..) {
            let mut values = Map::new();
            for (cell, column) in row.iter().zip(columns) {
                let property = column.property.and_then(|id| database.property(id));
                let value = property.and_then(|property| Some((property.id, table::value(property, cell)?)));
                values.extend(value.map(|(id, value)| (id.to_string(), value)));
            }
            let mut checks = Checks::default();
            let text = serde_json::Value::Object(values).to_string();
            let changes = ValueChanges::read(&mut checks, database, &text, false);
            let referred = self.check_references(&mut checks, caller, database, &changes, None).await;
            let checked = referred.and_then(|()| checks.finish());
            let broken = match checked {
                Ok(()) => {
                    prepared.push(Prepared { changes, content_file_id: None, new_id: None });
                    continue;
                }
                Err(Error::Invalid(broken)) => broken,
                Err(error @ (Error::OutOfScope(_) | Error::NotFound { .. })) => {
                    vec![Violation::new("", "not_found", error.to_string())]
                }
                Err(error) => return Err(error),
            };
            imported.wrong_rows += 1;
            let room = MAX_PROBLEMS.saturating_sub(imported.problems.len());
            let problems = broken.into_iter().take(room).map(|broken| problem(number, columns, broken));
            imported.problems.extend(problems);
        }
        Ok((self.in_order(prepared), imported))
    }

    /// Gives the records ascending ids in row order: those of one change have the same timestamp, so lists sort them by id.
    fn in_order(&self, records: Vec<Prepared>) -> Vec<Prepared> {
        let mut ids: Vec<RecordId> = records.iter().map(|_| self.context.ids.next()).collect();
        ids.sort_unstable();
        let with_id = |(record, id): (Prepared, RecordId)| Prepared { new_id: Some(id), ..record };
        records.into_iter().zip(ids).map(with_id).collect()
    }
}

/// Maps columns to properties: as requested, otherwise by name, otherwise not at all.
fn columns(
    table: &Table,
    database: &Database,
    requested: &[(u32, Option<String>)],
) -> Result<Vec<Column>, Error> {
    let mut checks = Checks::default();
    let mut columns: Vec<Column> = table
        .head
        .iter()
        .map(|name| Column {
            name: name.clone(),
            property: property_named(database, name).map(|property| property.id),
        })
        .collect();
    // If two columns match a property by name, only the first is mapped to it.
    let mut taken: Vec<PropertyId> = Vec::new();
    for column in &mut columns {
        column.property = column.property.filter(|id| !taken.contains(id));
        taken.extend(column.property);
    }
    for (at, (place, property)) in requested.iter().enumerate() {
        let path = format!("columns[{at}]");
        let Some(column) = usize::try_from(*place).ok().and_then(|place| columns.get_mut(place)) else {
            checks.violation(&path, "invalid", "names a column that the table does not have");
            continue;
        };
        let id = property.as_ref().map(|text| text.parse::<PropertyId>().ok());
        let property = id.map(|id| id.filter(|id| database.property(*id).is_some()));
        match property {
            None => column.property = None,
            Some(Some(id)) => column.property = Some(id),
            Some(None) => {
                checks.violation(&path, "not_found", "names a field that the database does not have")
            }
        }
    }
    let mut seen: Vec<PropertyId> = Vec::new();
    for column in &columns {
        let Some(id) = column.property else { continue };
        if seen.contains(&id) {
            let name = database.property(id).map_or("", |property| property.name.as_str());
            checks.violation("columns", "duplicate", format!("lead twice to the field '{name}'"));
        }
        seen.push(id);
    }
    if seen.is_empty() {
        let message = "have none that goes to a field: name one as a field is named, or say where it goes";
        checks.violation("columns", "required", message);
    }
    checks.finish()?;
    Ok(columns)
}

/// The property with a name: an exact match, otherwise ignoring case.
fn property_named<'a>(database: &'a Database, name: &str) -> Option<&'a Property> {
    let exact = database.properties.iter().find(|property| property.name == name);
    let folded = fold(name.trim());
    exact.or_else(|| database.properties.iter().find(|property| fold(&property.name) == folded))
}

/// Converts a violation to a problem with the name of the column instead of the property's id.
fn problem(row: u64, columns: &[Column], broken: Violation) -> RowProblem {
    let id = broken.path.strip_prefix("values.").map(|path| path.split('[').next().unwrap_or(path));
    let id = id.and_then(|id| id.parse::<PropertyId>().ok());
    let column = id.and_then(|id| columns.iter().find(|column| column.property == Some(id)));
    let column = column.map(|column| column.name.clone()).unwrap_or_default();
    RowProblem { row, column, code: broken.code.to_string(), message: broken.message }
}

fn violation(problem: RowProblem) -> Violation {
    let path = if problem.column.is_empty() {
        format!("rows[{}]", problem.row)
    } else {
        format!("rows[{}].{}", problem.row, problem.column)
    };
    Violation::new(path, problem.code, problem.message)
}
