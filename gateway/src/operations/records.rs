//! Records of databases: create, list, update, trash, versions; and backlinks of files.

use std::collections::HashMap;

use cairn_chassis::json;
use cairn_chassis::status::{Problem, Violation};
use cairn_proto::content::v1 as proto;
use cairn_proto::domain::{Condition, DateUnit, Filter, GroupOrder, Misread, SortOrder};
use cairn_proto::ids::{DatabaseId, FileId, RecordId};
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::databases::{self, SortInput};
use super::{Context, Page, Paging, Written, answered, changes, null_or_value, present};
use crate::answers::{Backlink, ImportedTable, Record, RecordGroups, RecordPage, RecordVersion};
use crate::change;
use crate::schema::inputs;

inputs!(CreateRecord, UpdateRecord, ImportTable);

/// A record to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CreateRecord {
    /// Values by property id.
    #[serde(default)]
    #[schema(value_type = Object, required = false)]
    pub(crate) values: Map<String, Value>,
    /// A file that is its body.
    #[schema(format = "uuid")]
    pub(crate) content_file_id: Option<String>,
}

/// Changes of a record: properties that are left out stay, null clears.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct UpdateRecord {
    /// Values by property id; null clears one.
    #[serde(default)]
    #[schema(value_type = Object, required = false)]
    pub(crate) values: Option<Map<String, Value>>,
    /// A file that is its body; null for none.
    #[serde(default, deserialize_with = "null_or_value")]
    #[schema(value_type = Option<String>, format = "uuid")]
    pub(crate) content_file_id: Option<Option<String>>,
    /// Change the record only while it has this version.
    #[schema(minimum = 1)]
    pub(crate) version: Option<u64>,
}

/// A table whose rows become records.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ImportTable {
    /// CSV with commas, semicolons or tabs; the first row names the columns. At most 2 MiB, 1 000 rows below it, 200 columns.
    #[schema(min_length = 1)]
    csv: String,
    /// Where columns go that do not go to the field of their name.
    #[serde(default)]
    #[schema(required = false)]
    columns: Vec<ColumnInput>,
    /// Writes nothing, and answers what would become of the table.
    #[serde(default)]
    #[schema(required = false)]
    pub(crate) dry_run: bool,
}

/// Where a column of a table goes.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ColumnInput {
    /// Its place, from 0.
    #[schema(minimum = 0, maximum = 1000)]
    index: u32,
    /// The property; null leaves the column out.
    #[schema(format = "uuid")]
    field_id: Option<String>,
}

/// Filter and order of a list.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    pub(crate) record_id: Option<String>,
    pub(crate) search: Option<String>,
    pub(crate) sort_field_id: Option<String>,
    pub(crate) sort_direction: Option<SortOrder>,
    /// A JSON list of sorts.
    pub(crate) sorts: Option<String>,
    pub(crate) filter_field_id: Option<String>,
    pub(crate) filter_operator: Option<String>,
    pub(crate) filter_value: Option<String>,
    /// A tree of conditions.
    pub(crate) filter: Option<Value>,
    pub(crate) view_id: Option<String>,
    pub(crate) limit: Option<u32>,
    pub(crate) offset: Option<u64>,
    pub(crate) allow_names: bool,
}

/// Grouping and aggregation of records.
#[derive(Debug, Default)]
pub(crate) struct Grouping {
    pub(crate) group_by: String,
    pub(crate) date_unit: Option<DateUnit>,
    pub(crate) order: Option<GroupOrder>,
    pub(crate) summarize: Vec<String>,
}

/// Parses a filter that was sent as JSON.
pub(crate) fn read_filter(text: &str) -> Result<Value, Problem> {
    json::read(text.as_bytes()).map_err(|unreadable| {
        Problem::validation(vec![Violation::new("filter", "invalid_json", unreadable.to_string())])
    })
}

impl Selection {
    fn sorts(&self) -> Result<Vec<proto::Sort>, Problem> {
        let order = self.sort_direction.unwrap_or_default().number();
        let first = self.sort_field_id.clone().map(|field_id| proto::Sort { field_id, order });
        let mut sorts: Vec<proto::Sort> = first.into_iter().collect();
        if let Some(text) = &self.sorts {
            let read: Vec<SortInput> = serde_json::from_str(text).map_err(|error| {
                let message = format!("must be a JSON list of {{\"fieldId\", \"direction\"}}: {error}");
                Problem::validation(vec![Violation::new("sorts", "invalid_json", message)])
            })?;
            sorts.extend(databases::sorts(read)?);
        }
        Ok(sorts)
    }

    /// The condition of the flat parameters first, then the tree.
    fn filters(&self) -> Result<Vec<proto::Filter>, Problem> {
        let condition = self.condition()?.map(Filter::Is);
        let tree = self.filter.as_ref().map(|tree| Filter::read(tree, "filter")).transpose();
        let violation = |one: Misread| Violation::new(one.path, one.code, one.message);
        let tree =
            tree.map_err(|misread| Problem::validation(misread.into_iter().map(violation).collect()))?;
        Ok(condition.into_iter().chain(tree).map(proto::Filter::from).collect())
    }

    /// A flat condition needs both a property and an operator.
    fn condition(&self) -> Result<Option<Condition>, Problem> {
        let missing = match (&self.filter_field_id, &self.filter_operator) {
            (None, None) if self.filter_value.is_none() => return Ok(None),
            (Some(_), Some(_)) => None,
            (None, _) => Some("filterFieldId"),
            (_, None) => Some("filterOperator"),
        };
        if let Some(path) = missing {
            let message = "filterFieldId and filterOperator go together";
            return Err(Problem::validation(vec![Violation::new(path, "required", message)]));
        }
        Ok(Some(Condition {
            field_id: self.filter_field_id.clone().unwrap_or_default(),
            // Unknown operators are rejected by the service.
            operator: self.filter_operator.as_deref().and_then(|operator| operator.parse().ok()),
            value: self.filter_value.clone().map(Value::String),
        }))
    }

    /// Translates violation paths back to the caller's own parameters.
    fn own_names(&self, mut problem: Problem) -> Problem {
        for violation in &mut problem.violations {
            let Some((list, rest)) = violation.path.split_once('[') else { continue };
            let Some((index, field)) = rest.split_once(']') else { continue };
            let Ok(index) = index.parse::<usize>() else { continue };
            violation.path = match (list, index) {
                ("sorts", 0) if self.sort_field_id.is_some() => "sortFieldId".to_owned(),
                // The flat parameter precedes those of the list.
                ("sorts", index) if self.sort_field_id.is_some() => format!("sorts[{}]{field}", index - 1),
                ("filters", 0) if self.filter_field_id.is_some() => match field {
                    ".fieldId" => "filterFieldId".to_owned(),
                    ".operator" => "filterOperator".to_owned(),
                    _ => "filterValue".to_owned(),
                },
                ("filters", _) => format!("filter{field}"),
                _ => continue,
            };
        }
        problem
    }
}

pub(crate) async fn list(
    context: &Context,
    database: DatabaseId,
    selection: Selection,
) -> Result<RecordPage, Problem> {
    let request = context.call.request(proto::ListRecordsRequest {
        database_id: database.to_string(),
        sorts: selection.sorts()?,
        filters: selection.filters()?,
        record_id: selection.record_id.clone(),
        search: selection.search.clone().unwrap_or_default(),
        view_id: selection.view_id.clone(),
        limit: selection.limit.unwrap_or_default(),
        offset: selection.offset.unwrap_or_default(),
        allow_names: selection.allow_names,
    });
    let listed = answered(context.upstreams.records().list_records(request).await);
    listed.map_err(|problem| selection.own_names(problem))?.try_into()
}

/// The selected records, grouped.
pub(crate) async fn groups(
    context: &Context,
    database: DatabaseId,
    selection: Selection,
    grouping: Grouping,
) -> Result<RecordGroups, Problem> {
    let request = context.call.request(proto::GroupRecordsRequest {
        database_id: database.to_string(),
        filters: selection.filters()?,
        search: selection.search.clone().unwrap_or_default(),
        view_id: selection.view_id.clone(),
        group_by: grouping.group_by,
        date_unit: grouping.date_unit.unwrap_or_default().number(),
        order: grouping.order.map_or(0, GroupOrder::number),
        summarize: grouping.summarize,
        allow_names: selection.allow_names,
    });
    let grouped = answered(context.upstreams.records().group_records(request).await);
    grouped.map_err(|problem| selection.own_names(problem))?.try_into()
}

pub(crate) async fn get(
    context: &Context,
    database: DatabaseId,
    record: RecordId,
) -> Result<Record, Problem> {
    let request = context.call.request(proto::GetRecordRequest {
        database_id: database.to_string(),
        record_id: record.to_string(),
    });
    let found = answered(context.upstreams.records().get_record(request).await)?;
    present(found.record)?.try_into()
}

pub(crate) async fn create(
    context: &Context,
    database: DatabaseId,
    input: CreateRecord,
    allow_names: bool,
) -> Result<Written<Record>, Problem> {
    let request = context.call.request(proto::CreateRecordRequest {
        database_id: database.to_string(),
        values_json: Value::Object(input.values).to_string(),
        content_file_id: input.content_file_id,
        allow_names,
        new_id: None,
    });
    let made = answered(context.upstreams.records().create_record(request).await)?;
    Ok(named(written(made.record, made.change_position)?, made.property_names))
}

/// Creates a record per row of a table, or plans it in a dry run.
pub(crate) async fn import(
    context: &Context,
    database: DatabaseId,
    input: ImportTable,
) -> Result<Written<ImportedTable>, Problem> {
    let column =
        |column: ColumnInput| proto::ColumnChoice { index: column.index, property_id: column.field_id };
    let request = context.call.request(proto::ImportRecordsRequest {
        database_id: database.to_string(),
        csv: input.csv.into_bytes().into(),
        columns: input.columns.into_iter().map(column).collect(),
        dry_run: input.dry_run,
    });
    let imported = answered(context.upstreams.records().import_records(request).await)?;
    let change = change::of_content(imported.change_position);
    Ok(Written { value: imported.into(), change })
}

/// Merges values, unless versions are given and the record's is none of them.
pub(crate) async fn update(
    context: &Context,
    database: DatabaseId,
    record: RecordId,
    input: UpdateRecord,
    if_version: Vec<u64>,
    allow_names: bool,
) -> Result<Written<Record>, Problem> {
    let fields = [("values", input.values.is_some()), ("content_file_id", input.content_file_id.is_some())];
    let update_mask = Some(changes(&fields, false)?);
    let request = context.call.request(proto::UpdateRecordRequest {
        database_id: database.to_string(),
        record_id: record.to_string(),
        values_json: input.values.map(|values| Value::Object(values).to_string()).unwrap_or_default(),
        content_file_id: input.content_file_id.flatten(),
        update_mask,
        if_version,
        allow_names,
    });
    let updated = answered(context.upstreams.records().update_record(request).await)?;
    Ok(named(written(updated.record, updated.change_position)?, updated.property_names))
}

/// Moves a record to trash.
pub(crate) async fn delete(
    context: &Context,
    database: DatabaseId,
    record: RecordId,
) -> Result<Written<()>, Problem> {
    let request = context.call.request(proto::DeleteRecordRequest {
        database_id: database.to_string(),
        record_id: record.to_string(),
    });
    let deleted = answered(context.upstreams.records().delete_record(request).await)?;
    Ok(Written { value: (), change: change::of_content(deleted.change_position) })
}

pub(crate) async fn restore(
    context: &Context,
    database: DatabaseId,
    record: RecordId,
) -> Result<Written<Record>, Problem> {
    let request = context.call.request(proto::RestoreRecordRequest {
        database_id: database.to_string(),
        record_id: record.to_string(),
    });
    let restored = answered(context.upstreams.records().restore_record(request).await)?;
    written(restored.record, restored.change_position)
}

/// Permanently deletes a trashed record.
pub(crate) async fn purge(
    context: &Context,
    database: DatabaseId,
    record: RecordId,
) -> Result<Written<()>, Problem> {
    let request = context.call.request(proto::PurgeRecordRequest {
        database_id: database.to_string(),
        record_id: record.to_string(),
    });
    let purged = answered(context.upstreams.records().purge_record(request).await)?;
    Ok(Written { value: (), change: change::of_content(purged.change_position) })
}

pub(crate) async fn versions(
    context: &Context,
    database: DatabaseId,
    record: RecordId,
    paging: Paging,
) -> Result<Page<RecordVersion>, Problem> {
    let request = context.call.request(proto::ListRecordVersionsRequest {
        database_id: database.to_string(),
        record_id: record.to_string(),
        page_size: paging.limit.unwrap_or_default(),
        page_token: paging.cursor.unwrap_or_default(),
    });
    let listed = answered(context.upstreams.records().list_record_versions(request).await)?;
    Page::try_read(listed.versions, listed.next_page_token, listed.total_size)
}

pub(crate) async fn restore_version(
    context: &Context,
    database: DatabaseId,
    record: RecordId,
    version: u64,
) -> Result<Written<Record>, Problem> {
    let request = context.call.request(proto::RestoreRecordVersionRequest {
        database_id: database.to_string(),
        record_id: record.to_string(),
        version,
    });
    let restored = answered(context.upstreams.records().restore_record_version(request).await)?;
    written(restored.record, restored.change_position)
}

pub(crate) async fn backlinks(
    context: &Context,
    file: FileId,
    paging: Paging,
) -> Result<Page<Backlink>, Problem> {
    let request = context.call.request(proto::ListBacklinksRequest {
        file_id: file.to_string(),
        page_size: paging.limit.unwrap_or_default(),
        page_token: paging.cursor.unwrap_or_default(),
    });
    let listed = answered(context.upstreams.records().list_backlinks(request).await)?;
    Ok(Page::read(listed.backlinks, listed.next_page_token, listed.total_size))
}

fn written(record: Option<proto::Record>, position: u64) -> Result<Written<Record>, Problem> {
    Ok(Written { value: present(record)?.try_into()?, change: change::of_content(position) })
}

/// Adds the property names if the service was asked for them.
fn named(mut written: Written<Record>, names: HashMap<String, String>) -> Written<Record> {
    written.value.property_names = names.into_iter().collect();
    written
}
