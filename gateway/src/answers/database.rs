//! A database and its views.

use cairn_proto::content::v1::{self as proto, Property};
use cairn_proto::domain::{Operator, SortOrder};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::{optional_time, time};

/// A condition of a view.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ViewFilter {
    pub(crate) field_id: String,
    /// Null for one of a newer service.
    #[schema(required = true)]
    pub(crate) operator: Option<Operator>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) value: Option<Value>,
}

/// An order of a view.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ViewSort {
    pub(crate) field_id: String,
    pub(crate) direction: SortOrder,
}

/// A saved way to look at a database.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct View {
    #[schema(format = "uuid")]
    pub(crate) id: String,
    pub(crate) name: String,
    /// Always `table`.
    r#type: &'static str,
    /// All hold.
    pub(crate) filters: Vec<ViewFilter>,
    /// The first decides, the others break ties.
    pub(crate) sorts: Vec<ViewSort>,
    pub(crate) hidden_field_ids: Vec<String>,
    /// From 0.
    position: u32,
    pub(crate) is_default: bool,
}

impl From<proto::View> for View {
    fn from(view: proto::View) -> Self {
        let filter = |filter: proto::Condition| ViewFilter {
            field_id: filter.field_id,
            operator: Operator::from_number(filter.operator),
            value: filter.value_json.and_then(|text| serde_json::from_str(&text).ok()),
        };
        let sort = |sort: proto::Sort| ViewSort {
            field_id: sort.field_id,
            direction: SortOrder::from_number(sort.order).unwrap_or_default(),
        };
        Self {
            id: view.id,
            name: view.name,
            r#type: "table",
            filters: view.filters.into_iter().map(filter).collect(),
            sorts: view.sorts.into_iter().map(sort).collect(),
            hidden_field_ids: view.hidden_field_ids,
            position: view.position,
            is_default: view.is_default,
        }
    }
}

/// A structured database.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Database {
    #[schema(format = "uuid")]
    pub(crate) id: String,
    #[schema(format = "uuid")]
    pub(crate) workspace_id: String,
    /// The folder it stands in; null for the root.
    #[schema(required = true)]
    pub(crate) folder_id: Option<String>,
    pub(crate) name: String,
    #[schema(required = true)]
    pub(crate) description: Option<String>,
    #[schema(required = true)]
    pub(crate) icon: Option<String>,
    /// In their order.
    pub(crate) properties: Vec<Property>,
    /// The same as `properties`.
    fields: Vec<Property>,
    pub(crate) views: Vec<View>,
    pub(crate) record_count: u64,
    #[schema(format = DateTime)]
    pub(crate) created_at: String,
    #[schema(format = DateTime)]
    pub(crate) updated_at: String,
    /// Of a database in trash.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    deleted_at: Option<String>,
}

impl From<proto::Database> for Database {
    fn from(database: proto::Database) -> Self {
        Self {
            id: database.id,
            workspace_id: database.workspace_id,
            folder_id: database.folder_id,
            name: database.name,
            description: database.description,
            icon: database.icon,
            fields: database.properties.clone(),
            properties: database.properties,
            views: database.views.into_iter().map(View::from).collect(),
            record_count: database.record_count,
            created_at: time(database.created_at.as_ref()),
            updated_at: time(database.updated_at.as_ref()),
            deleted_at: optional_time(database.deleted_at.as_ref()),
        }
    }
}

/// What became of a table, or what would.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DatabaseOfTable {
    /// Null of a dry run.
    #[schema(required = true)]
    pub(crate) database: Option<Database>,
    /// What each column becomes, in their order.
    pub(crate) fields: Vec<proto::TableField>,
    /// Below the head.
    pub(crate) rows: u64,
    /// The first of them, as they were read.
    pub(crate) first_rows: Vec<proto::TableRow>,
    /// Of a dry run: the first of what is wrong with rows.
    pub(crate) problems: Vec<proto::RowProblem>,
    /// Rows that cannot be taken.
    pub(crate) wrong_rows: u64,
}

impl From<proto::CreateDatabaseOfTableResponse> for DatabaseOfTable {
    fn from(made: proto::CreateDatabaseOfTableResponse) -> Self {
        Self {
            database: made.database.map(Database::from),
            fields: made.fields,
            rows: made.rows,
            first_rows: made.first_rows,
            problems: made.problems,
            wrong_rows: made.wrong_rows,
        }
    }
}
