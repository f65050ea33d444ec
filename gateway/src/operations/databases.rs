//! Databases: create, read, list, update, trash; their properties and views.

use cairn_chassis::status::{Problem, Violation};
use cairn_chassis::wording;
use cairn_proto::content::v1 as proto;
use cairn_proto::domain::{Condition, PropertyType, SortOrder};
use cairn_proto::ids::{DatabaseId, PropertyId, ViewId};
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::{Context, Page, Paging, Written, answered, changes, null_or_value, present, update};
use crate::answers::{Database, Property, View};
use crate::change;
use crate::schema::inputs;

inputs!(CreateDatabase, UpdateDatabase, CreateField, UpdateField, CreateView, UpdateView);

/// A database to make. Further fields are accepted and ignored.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CreateDatabase {
    /// 1 to 255 characters without `/`.
    #[schema(min_length = 1, max_length = 255)]
    name: String,
    description: Option<String>,
    /// An emoji, or the address of a picture.
    icon: Option<String>,
    /// The folder it goes into; the root when left out.
    #[schema(format = "uuid")]
    folder_id: Option<String>,
}

/// Changes of a database: fields that are left out stay. Further fields are accepted and ignored.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UpdateDatabase {
    #[serde(default)]
    #[schema(value_type = String, required = false, min_length = 1, max_length = 255)]
    name: Option<String>,
    #[serde(default, deserialize_with = "null_or_value")]
    #[schema(value_type = Option<String>)]
    description: Option<Option<String>>,
    #[serde(default, deserialize_with = "null_or_value")]
    #[schema(value_type = Option<String>)]
    icon: Option<Option<String>>,
    /// The folder to move it to; null for the root.
    #[serde(default, deserialize_with = "null_or_value")]
    #[schema(value_type = Option<String>, format = "uuid")]
    folder_id: Option<Option<String>>,
}

/// A choice of a select.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OptionInput {
    /// Left out for a new option, and for one that is known by its name.
    id: Option<String>,
    #[schema(min_length = 1, max_length = 255)]
    name: String,
    /// Left out: what the option has now. Empty: none.
    color: Option<String>,
}

/// What a property's type needs to know.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ConfigInput {
    /// Of select and multi_select: all of them, in their order. Each is known by its id, and without one by its name,
    /// upper and lower case alike.
    options: Option<Vec<OptionInput>>,
    /// Of references: whether a value may be an array of ids.
    multiple: Option<bool>,
    /// Of a relation: the database whose records it names.
    #[schema(format = "uuid")]
    relation_database_id: Option<String>,
}

impl From<ConfigInput> for proto::PropertyConfig {
    fn from(config: ConfigInput) -> Self {
        let option = |option: OptionInput| proto::PropertyOption {
            id: option.id.unwrap_or_default(),
            name: option.name,
            color: option.color,
        };
        Self {
            options: config.options.unwrap_or_default().into_iter().map(option).collect(),
            multiple: config.multiple.unwrap_or_default(),
            relation_database_id: config.relation_database_id,
        }
    }
}

/// A property to add.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CreateField {
    #[schema(min_length = 1, max_length = 255)]
    name: String,
    r#type: PropertyType,
    config: Option<ConfigInput>,
}

/// Changes of a property: fields that are left out stay.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct UpdateField {
    #[schema(min_length = 1, max_length = 255)]
    name: Option<String>,
    /// What of it is left out or null stays. Options that are left out of a list are taken from the records; each record
    /// that loses one gets a version, and the versions before keep it.
    #[serde(default, deserialize_with = "null_or_value")]
    #[schema(value_type = Option<ConfigInput>)]
    config: Option<Option<ConfigInput>>,
    /// Its place among the properties, from 0.
    position: Option<u32>,
    /// Fixed: a request that names it is refused. Add a property of the other type instead.
    #[serde(default)]
    #[schema(value_type = Value, required = false)]
    r#type: Option<Value>,
}

/// A condition.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct FilterInput {
    field_id: String,
    /// `equals`, `not_equals`, `contains`, `in`, `gt`, `gte`, `lt`, `lte`, `before`, `after`, `is_empty`, `is_not_empty`.
    operator: String,
    /// What to compare with.
    #[serde(default)]
    #[schema(value_type = Value, required = false)]
    value: Option<Value>,
}

/// An order.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SortInput {
    pub(crate) field_id: String,
    /// `asc` (when left out) or `desc`.
    pub(crate) direction: Option<String>,
}

/// A view to save.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CreateView {
    #[schema(min_length = 1, max_length = 255)]
    name: String,
    /// Always `table`.
    #[expect(dead_code, reason = "there is one type; a caller may name it")]
    r#type: Option<ViewType>,
    /// All hold.
    filters: Option<Vec<FilterInput>>,
    /// The first decides, the others break ties.
    sorts: Option<Vec<SortInput>>,
    hidden_field_ids: Option<Vec<String>>,
}

/// The kind of a view.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ViewType {
    Table,
}

/// Changes of a view: fields that are left out stay.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct UpdateView {
    #[schema(min_length = 1, max_length = 255)]
    name: Option<String>,
    /// All of them from now on.
    filters: Option<Vec<FilterInput>>,
    /// All of them from now on.
    sorts: Option<Vec<SortInput>>,
    /// All of them from now on.
    hidden_field_ids: Option<Vec<String>>,
    /// Its place among the views, from 0.
    position: Option<u32>,
}

fn filters(inputs: Vec<FilterInput>) -> Vec<proto::Condition> {
    let condition = |input: FilterInput| Condition {
        field_id: input.field_id,
        // Unknown operators are rejected by the service.
        operator: input.operator.parse().ok(),
        value: input.value,
    };
    inputs.into_iter().map(|input| condition(input).into()).collect()
}

/// The `sorts` parameter of a list.
pub(super) fn sorts(inputs: Vec<SortInput>) -> Result<Vec<proto::Sort>, Problem> {
    let mut sorts = Vec::with_capacity(inputs.len());
    let mut unknown = Vec::new();
    for (place, input) in inputs.into_iter().enumerate() {
        let order = input.direction.as_deref().map_or(Ok(SortOrder::default()), str::parse);
        let Ok(order) = order else {
            let message = wording::one_of(&SortOrder::NAMES);
            unknown.push(Violation::new(format!("sorts[{place}].direction"), "invalid_value", message));
            continue;
        };
        sorts.push(proto::Sort { field_id: input.field_id, order: order.number() });
    }
    if unknown.is_empty() { Ok(sorts) } else { Err(Problem::validation(unknown)) }
}

pub(crate) async fn create(context: &Context, input: CreateDatabase) -> Result<Written<Database>, Problem> {
    let CreateDatabase { name, description, icon, folder_id } = input;
    let made = proto::CreateDatabaseRequest { name, description, icon, folder_id, new_id: None };
    let request = context.call.request(made);
    let made = answered(context.upstreams.databases().create_database(request).await)?;
    written(made.database, made.change_position)
}

pub(crate) async fn get(context: &Context, id: DatabaseId) -> Result<Database, Problem> {
    let request = context.call.request(proto::GetDatabaseRequest { database_id: id.to_string() });
    let found = answered(context.upstreams.databases().get_database(request).await)?;
    present(found.database).map(Database::from)
}

pub(crate) async fn list(
    context: &Context,
    folder_id: Option<String>,
    paging: Paging,
) -> Result<Page<Database>, Problem> {
    let request = context.call.request(proto::ListDatabasesRequest {
        folder_id,
        page_size: paging.limit.unwrap_or_default(),
        page_token: paging.cursor.unwrap_or_default(),
    });
    let listed = answered(context.upstreams.databases().list_databases(request).await)?;
    Ok(Page::read(listed.databases, listed.next_page_token, listed.total_size))
}

pub(crate) async fn list_trashed(context: &Context, paging: Paging) -> Result<Page<Database>, Problem> {
    let request = context.call.request(proto::ListTrashedDatabasesRequest {
        page_size: paging.limit.unwrap_or_default(),
        page_token: paging.cursor.unwrap_or_default(),
    });
    let listed = answered(context.upstreams.databases().list_trashed_databases(request).await)?;
    Ok(Page::read(listed.databases, listed.next_page_token, listed.total_size))
}

pub(crate) async fn update(
    context: &Context,
    id: DatabaseId,
    input: UpdateDatabase,
) -> Result<Written<Database>, Problem> {
    let request = context.call.request(proto::UpdateDatabaseRequest {
        database_id: id.to_string(),
        ..update!(input => UpdateDatabaseRequest { name, description, icon, folder_id })
    });
    let updated = answered(context.upstreams.databases().update_database(request).await)?;
    written(updated.database, updated.change_position)
}

/// Moves a database to trash.
pub(crate) async fn delete(context: &Context, id: DatabaseId) -> Result<Written<()>, Problem> {
    let request = context.call.request(proto::DeleteDatabaseRequest { database_id: id.to_string() });
    let deleted = answered(context.upstreams.databases().delete_database(request).await)?;
    Ok(Written { value: (), change: change::of_content(deleted.change_position) })
}

pub(crate) async fn restore(context: &Context, id: DatabaseId) -> Result<Written<Database>, Problem> {
    let request = context.call.request(proto::RestoreDatabaseRequest { database_id: id.to_string() });
    let restored = answered(context.upstreams.databases().restore_database(request).await)?;
    written(restored.database, restored.change_position)
}

/// Permanently deletes a trashed database.
pub(crate) async fn purge(context: &Context, id: DatabaseId) -> Result<Written<()>, Problem> {
    let request = context.call.request(proto::PurgeDatabaseRequest { database_id: id.to_string() });
    let purged = answered(context.upstreams.databases().purge_database(request).await)?;
    Ok(Written { value: (), change: change::of_content(purged.change_position) })
}

pub(crate) async fn create_field(
    context: &Context,
    id: DatabaseId,
    input: CreateField,
) -> Result<Written<Property>, Problem> {
    let request = context.call.request(proto::CreatePropertyRequest {
        database_id: id.to_string(),
        name: input.name,
        r#type: input.r#type.into(),
        config: input.config.map(Into::into),
    });
    let made = answered(context.upstreams.databases().create_property(request).await)?;
    let value = present(made.property)?;
    Ok(Written { value, change: change::of_content(made.change_position) })
}

pub(crate) async fn update_field(
    context: &Context,
    id: DatabaseId,
    field: PropertyId,
    input: UpdateField,
) -> Result<Written<Property>, Problem> {
    let config = input.config.as_ref().and_then(Option::as_ref);
    let given = |has: fn(&ConfigInput) -> bool| config.is_some_and(has);
    let parts = [
        ("config.options", given(|config| config.options.is_some())),
        ("config.multiple", given(|config| config.multiple.is_some())),
        ("config.relation_database_id", given(|config| config.relation_database_id.is_some())),
        // Passed on, so that the service that owns the rule rejects it.
        ("type", input.r#type.is_some()),
    ];
    let parts = parts.into_iter().filter(|(_, is_given)| *is_given).map(|(part, _)| part.to_owned());
    let parts: Vec<String> = parts.collect();
    let fields = [
        ("name", input.name.is_some()),
        ("config", input.config.is_some()),
        ("position", input.position.is_some()),
    ];
    let mut update_mask = changes(&fields, !parts.is_empty())?;
    update_mask.paths.extend(parts);
    let request = context.call.request(proto::UpdatePropertyRequest {
        database_id: id.to_string(),
        property_id: field.to_string(),
        update_mask: Some(update_mask),
        name: input.name.unwrap_or_default(),
        config: input.config.flatten().map(Into::into),
        position: input.position.unwrap_or_default(),
    });
    let updated = answered(context.upstreams.databases().update_property(request).await)?;
    let value = present(updated.property)?;
    Ok(Written { value, change: change::of_content(updated.change_position) })
}

pub(crate) async fn delete_field(
    context: &Context,
    id: DatabaseId,
    field: PropertyId,
) -> Result<Written<()>, Problem> {
    let request = context.call.request(proto::DeletePropertyRequest {
        database_id: id.to_string(),
        property_id: field.to_string(),
    });
    let deleted = answered(context.upstreams.databases().delete_property(request).await)?;
    Ok(Written { value: (), change: change::of_content(deleted.change_position) })
}

pub(crate) async fn create_view(
    context: &Context,
    id: DatabaseId,
    input: CreateView,
) -> Result<Written<View>, Problem> {
    let request = context.call.request(proto::CreateViewRequest {
        database_id: id.to_string(),
        name: input.name,
        filters: filters(input.filters.unwrap_or_default()),
        sorts: sorts(input.sorts.unwrap_or_default())?,
        hidden_field_ids: input.hidden_field_ids.unwrap_or_default(),
    });
    let made = answered(context.upstreams.databases().create_view(request).await)?;
    Ok(Written { value: present(made.view)?.into(), change: change::of_content(made.change_position) })
}

pub(crate) async fn update_view(
    context: &Context,
    id: DatabaseId,
    view: ViewId,
    input: UpdateView,
) -> Result<Written<View>, Problem> {
    let fields = [
        ("name", input.name.is_some()),
        ("filters", input.filters.is_some()),
        ("sorts", input.sorts.is_some()),
        ("hidden_field_ids", input.hidden_field_ids.is_some()),
        ("position", input.position.is_some()),
    ];
    let request = context.call.request(proto::UpdateViewRequest {
        database_id: id.to_string(),
        view_id: view.to_string(),
        update_mask: Some(changes(&fields, false)?),
        name: input.name.unwrap_or_default(),
        filters: filters(input.filters.unwrap_or_default()),
        sorts: sorts(input.sorts.unwrap_or_default())?,
        hidden_field_ids: input.hidden_field_ids.unwrap_or_default(),
        position: input.position.unwrap_or_default(),
    });
    let updated = answered(context.upstreams.databases().update_view(request).await)?;
    Ok(Written { value: present(updated.view)?.into(), change: change::of_content(updated.change_position) })
}

pub(crate) async fn delete_view(
    context: &Context,
    id: DatabaseId,
    view: ViewId,
) -> Result<Written<()>, Problem> {
    let request = context
        .call
        .request(proto::DeleteViewRequest { database_id: id.to_string(), view_id: view.to_string() });
    let deleted = answered(context.upstreams.databases().delete_view(request).await)?;
    Ok(Written { value: (), change: change::of_content(deleted.change_position) })
}

fn written(database: Option<proto::Database>, position: u64) -> Result<Written<Database>, Problem> {
    Ok(Written { value: present(database)?.into(), change: change::of_content(position) })
}
