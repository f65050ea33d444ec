//! Databases from tables (CSV): a property per column, a record per row.

use cairn_chassis::status::Problem;
use cairn_proto::content::v1 as proto;
use cairn_proto::domain::PropertyType;
use serde::Deserialize;
use utoipa::ToSchema;

use super::{Context, Written, answered};
use crate::answers::DatabaseOfTable;
use crate::change;
use crate::schema::inputs;

inputs!(CreateDatabaseOfTable);

/// A database to make of a table.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CreateDatabaseOfTable {
    /// 1 to 255 characters without `/`.
    #[schema(min_length = 1, max_length = 255)]
    name: String,
    description: Option<String>,
    /// The folder it goes into; the root when left out.
    #[schema(format = "uuid")]
    folder_id: Option<String>,
    /// CSV with commas, semicolons or tabs; the first row names the columns. At most 2 MiB, 1 000 rows below it, 200 columns.
    #[schema(min_length = 1)]
    csv: String,
    /// What columns become that do not become what they look like.
    #[serde(default)]
    #[schema(required = false)]
    fields: Vec<FieldInput>,
    /// Writes nothing, and answers what would become of the table.
    #[serde(default)]
    #[schema(required = false)]
    pub(crate) dry_run: bool,
}

/// What a column of a table becomes.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct FieldInput {
    /// The column's place, from 0.
    #[schema(minimum = 0, maximum = 1000)]
    index: u32,
    /// The column's name when left out.
    #[schema(min_length = 1, max_length = 255)]
    name: Option<String>,
    /// What its values look like when left out. No relation, and no reference.
    r#type: Option<PropertyType>,
    /// Whether there is no field for it.
    #[serde(default)]
    #[schema(required = false)]
    is_left_out: bool,
    /// Whether it titles the records; it takes texts then. Left out of all: a column that is called so, or the first with texts.
    #[serde(default)]
    #[schema(required = false)]
    is_primary: bool,
}

/// Creates a database from a table, or plans it in a dry run.
pub(crate) async fn create_database(
    context: &Context,
    input: CreateDatabaseOfTable,
) -> Result<Written<DatabaseOfTable>, Problem> {
    let field = |field: FieldInput| proto::FieldChoice {
        index: field.index,
        name: field.name,
        r#type: field.r#type.map(PropertyType::number).unwrap_or_default(),
        is_left_out: field.is_left_out,
        is_primary: field.is_primary,
    };
    let request = context.call.request(proto::CreateDatabaseOfTableRequest {
        name: input.name,
        description: input.description,
        folder_id: input.folder_id,
        csv: input.csv.into_bytes().into(),
        fields: input.fields.into_iter().map(field).collect(),
        dry_run: input.dry_run,
    });
    let made = answered(context.upstreams.records().create_database_of_table(request).await)?;
    let change = change::of_content(made.change_position);
    Ok(Written { value: made.into(), change })
}
