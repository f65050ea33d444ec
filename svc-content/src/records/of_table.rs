//! Creating a database from a table: a field per column and a record per row, in one transaction.

use std::collections::HashSet;

use cairn_proto::domain::limits::NAME_CHARS;
use cairn_proto::ids::PropertyId;

use super::import::{Column, Imported};
use super::table::{self, Table};
use super::{Records, guess};
use crate::Error;
use crate::change::Change;
use crate::checks::Checks;
use crate::databases::properties::{MAX_OPTIONS, check_label};
use crate::databases::{self, DatabaseDraft};
use crate::model::{Database, Property, PropertyOption, PropertySettings, PropertyType, fold};
use crate::scope::Caller;

/// Column names that suggest the primary field.
const TITLE_NAMES: [&str; 2] = ["name", "title"];

/// A database to be created from a table.
#[derive(Debug, Clone)]
pub(crate) struct DatabaseFromTable {
    pub(crate) database: DatabaseDraft,
    pub(crate) csv: Vec<u8>,
    pub(crate) fields: Vec<FieldChoice>,
    /// Whether to report the result without writing anything.
    pub(crate) dry_run: bool,
}

/// The field that the caller chose for a column.
#[derive(Debug, Clone, Default)]
pub(crate) struct FieldChoice {
    /// The column's index.
    pub(crate) index: u32,
    /// The column's name if absent.
    pub(crate) name: Option<String>,
    /// Inferred from the values if absent.
    pub(crate) kind: Option<PropertyType>,
    pub(crate) is_left_out: bool,
    pub(crate) is_primary: bool,
}

/// The field that a column becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableField {
    /// The name of the column.
    pub(crate) column: String,
    pub(crate) name: String,
    pub(crate) kind: PropertyType,
    pub(crate) is_left_out: bool,
    pub(crate) is_primary: bool,
    /// The options of a select field, in order of first occurrence.
    pub(crate) options: Vec<String>,
}

/// The result of an import, or of its dry run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TableImport {
    pub(crate) fields: Vec<TableField>,
    pub(crate) imported: Imported,
    /// Absent from a dry run.
    pub(crate) database: Option<Database>,
}

impl Records {
    /// Creates a database from a table.
    ///
    /// # Errors
    /// `VALIDATION_ERROR` as for an import, and with a path such as `fields[3].type` for an invalid choice.
    pub(crate) async fn create_database(
        &self,
        caller: &Caller,
        draft: DatabaseFromTable,
    ) -> Result<TableImport, Error> {
        let table = Table::read(&draft.csv)?;
        let mut checks = Checks::default();
        let fields = fields(&mut checks, &table, &draft.fields);
        let (properties, columns) = self.properties(&table, &fields);
        let planned = databases::planned(&mut checks, &self.context, caller, draft.database, properties);
        checks.finish()?;
        let (prepared, mut imported) = self.check_rows(caller, &planned, &table, &columns).await?;
        if draft.dry_run {
            return Ok(TableImport { fields, imported, database: None });
        }
        imported.require_valid_rows()?;
        let mut change = Change::begin(&self.context, caller).await?;
        let mut database = databases::insert(&mut change, caller, planned).await?;
        for prepared in prepared {
            self.create_in(&mut change, caller, &database, prepared).await?;
            imported.created += 1;
        }
        database.record_count = imported.created;
        imported.position = change.commit().await?.last;
        Ok(TableImport { fields, imported, database: Some(database) })
    }

    /// The properties of the fields, the primary one first, and the property of each column.
    fn properties(&self, table: &Table, fields: &[TableField]) -> (Vec<Property>, Vec<Column>) {
        let mut properties = Vec::with_capacity(fields.len());
        let mut columns = Vec::with_capacity(fields.len());
        for (field, name) in fields.iter().zip(&table.head) {
            let mut column = Column { name: name.clone(), property: None };
            if !field.is_left_out {
                let property = self.property(field);
                column.property = Some(property.id);
                let place = if field.is_primary { 0 } else { properties.len() };
                properties.insert(place, property);
            }
            columns.push(column);
        }
        (properties, columns)
    }

    fn property(&self, field: &TableField) -> Property {
        let primary = databases::primary_property(&self.context, field.name.clone());
        if field.is_primary {
            return primary;
        }
        let options = field.options.iter().map(|name| PropertyOption {
            id: self.new_option_id(),
            name: name.clone(),
            color: String::new(),
        });
        let config = PropertySettings { options: options.collect(), ..PropertySettings::default() };
        Property { kind: field.kind, is_primary: false, config, ..primary }
    }

    fn new_option_id(&self) -> String {
        let id: PropertyId = self.context.ids.next();
        id.to_string()
    }
}

/// The fields of the columns: as chosen by the caller, otherwise inferred.
fn fields(checks: &mut Checks, table: &Table, choices: &[FieldChoice]) -> Vec<TableField> {
    let mut chosen: Vec<Option<(usize, &FieldChoice)>> = vec![None; table.head.len()];
    for (at, choice) in choices.iter().enumerate() {
        let path = format!("fields[{at}].index");
        match usize::try_from(choice.index).ok().and_then(|place| chosen.get_mut(place)) {
            None => checks.violation(&path, "invalid", "names a column that the table does not have"),
            Some(Some(_)) => checks.violation(&path, "duplicate", "names a column that was named before"),
            Some(free) => *free = Some((at, choice)),
        }
    }
    let mut names = HashSet::new();
    let mut fields = Vec::with_capacity(chosen.len());
    for (place, choice) in chosen.iter().enumerate() {
        let own = unique_name(table, place, &mut names);
        let choice = choice.map(|(_, choice)| choice);
        let is_empty =
            own.is_none() && choice.is_none() && cells(table, place).all(|cell| cell.trim().is_empty());
        fields.push(TableField {
            column: table.head.get(place).cloned().unwrap_or_default(),
            name: choice
                .and_then(|choice| choice.name.clone())
                .or(own)
                .unwrap_or_else(|| format!("Column {}", place + 1)),
            kind: choice.and_then(|choice| choice.kind).unwrap_or_else(|| guess::kind(cells(table, place))),
            is_left_out: choice.map_or(is_empty, |choice| choice.is_left_out),
            is_primary: choice.is_some_and(|choice| choice.is_primary),
            options: Vec::new(),
        });
    }
    choose_primary(checks, &mut fields, &chosen);
    for (place, field) in fields.iter_mut().enumerate().filter(|(_, field)| !field.is_left_out) {
        let path = path_of(&chosen, place);
        check_label(checks, &format!("{path}.name"), &field.name);
        if field.kind.is_reference() {
            let message = "a column becomes no relation and no reference: add such a field afterwards";
            checks.violation(&format!("{path}.type"), "invalid", message);
        }
        if field.kind.has_options() {
            field.options = options(checks, &format!("{path}.type"), field.kind, cells(table, place));
        }
    }
    fields
}

/// Chooses the primary field: the caller's choice, otherwise one with a title name, otherwise the first text field.
fn choose_primary(checks: &mut Checks, fields: &mut [TableField], chosen: &[Option<(usize, &FieldChoice)>]) {
    let kind_is_free =
        |place: usize| chosen.get(place).copied().flatten().is_none_or(|(_, choice)| choice.kind.is_none());
    if fields.iter().all(|field| field.is_left_out) {
        checks.violation("fields", "required", "have none that is kept: keep a column at least");
        return;
    }
    let all: &[TableField] = fields;
    let mut primary = all.iter().enumerate().filter(|(_, field)| field.is_primary).map(|(place, _)| place);
    let (first, second) = (primary.next(), primary.next());
    if let Some(second) = second {
        let message = "titles the records, and so does a column before it: choose one";
        checks.violation(&format!("{}.isPrimary", path_of(chosen, second)), "duplicate", message);
    }
    let kept = |(_, field): &(usize, &TableField)| !field.is_left_out;
    let takes_texts =
        |(place, field): &(usize, &TableField)| field.kind == PropertyType::Text || kind_is_free(*place);
    let is_title =
        |(_, field): &(usize, &TableField)| TITLE_NAMES.contains(&fold(field.name.trim()).as_str());
    let free = || all.iter().enumerate().filter(kept).filter(takes_texts);
    let has_texts = |(_, field): &(usize, &TableField)| field.kind == PropertyType::Text;
    let found = first.or_else(|| {
        let (titled, texts) = (free().find(is_title), free().find(has_texts));
        titled.or(texts).or_else(|| free().next()).map(|(place, _)| place)
    });
    let Some(place) = found else {
        let message = "have none that takes texts, and one of them titles the records: choose text for it";
        checks.violation("fields", "required", message);
        return;
    };
    let (path, may_be_text) = (path_of(chosen, place), kind_is_free(place));
    let Some(field) = fields.get_mut(place) else { return };
    if field.is_left_out {
        checks.violation(
            &format!("{path}.isPrimary"),
            "invalid",
            "titles the records, so it cannot be left out",
        );
    }
    if field.kind != PropertyType::Text && !may_be_text {
        let message = "titles the records, so it takes texts: choose text, or let another column title them";
        checks.violation(&format!("{path}.type"), "invalid", message);
    }
    (field.is_primary, field.kind) = (true, PropertyType::Text);
}

/// The path of a violation: the caller's choice for a column, or the column itself.
fn path_of(chosen: &[Option<(usize, &FieldChoice)>], place: usize) -> String {
    match chosen.get(place).copied().flatten() {
        Some((at, _)) => format!("fields[{at}]"),
        None => format!("columns[{place}]"),
    }
}

fn cells(table: &Table, place: usize) -> impl Iterator<Item = &str> {
    table.rows.iter().filter_map(move |row| row.get(place))
}

/// The name of a column as a unique field name; `None` if it has none.
fn unique_name(table: &Table, place: usize, names: &mut HashSet<String>) -> Option<String> {
    let name = table.head.get(place)?.split(char::is_control).collect::<Vec<_>>().join(" ");
    let name = name.trim();
    if name.is_empty() {
        return None;
    }
    let mut count = 1_usize;
    loop {
        let end = if count == 1 { String::new() } else { format!(" ({count})") };
        let room = NAME_CHARS.saturating_sub(end.len());
        let own: String = name.chars().take(room).chain(end.chars()).collect();
        if names.insert(fold(&own)) {
            return Some(own);
        }
        count += 1;
    }
}

/// The distinct options in a column, in order of first occurrence.
fn options<'a>(
    checks: &mut Checks,
    path: &str,
    kind: PropertyType,
    cells: impl Iterator<Item = &'a str>,
) -> Vec<String> {
    let mut seen = HashSet::new();
    let mut options = Vec::new();
    for cell in cells {
        let text = table::plain(cell.trim());
        let several = if kind == PropertyType::MultiSelect { table::parts(text) } else { vec![text] };
        for name in several {
            if !name.is_empty() && seen.insert(fold(name)) {
                options.push(name.to_owned());
            }
        }
    }
    if options.len() > MAX_OPTIONS {
        let message = format!(
            "does not suit {} different values: such a field has at most {MAX_OPTIONS} options",
            options.len()
        );
        checks.violation(path, "too_many", message);
        return Vec::new();
    }
    let mut of_options = Checks::default();
    for name in &options {
        check_label(&mut of_options, path, name);
    }
    if of_options.finish().is_err() {
        let message = "does not suit values that are too long for an option, or have several lines";
        checks.violation(path, "invalid", message);
    }
    options
}
