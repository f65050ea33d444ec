//! Saved views of a database.

use cairn_proto::domain::{self, Operator};
use cairn_proto::ids::{PropertyId, ViewId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A condition as it was saved with a view; the database may have changed since.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ViewFilter {
    pub(crate) field_id: String,
    pub(crate) operator: Operator,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) value: Option<Value>,
}

impl From<ViewFilter> for domain::Condition {
    fn from(filter: ViewFilter) -> Self {
        Self { field_id: filter.field_id, operator: Some(filter.operator), value: filter.value }
    }
}

/// An order by a property.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sort {
    pub(crate) field_id: PropertyId,
    pub(crate) is_descending: bool,
}

/// A saved view.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct View {
    pub(crate) id: ViewId,
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) filters: Vec<ViewFilter>,
    #[serde(default)]
    pub(crate) sorts: Vec<Sort>,
    #[serde(default)]
    pub(crate) hidden_field_ids: Vec<PropertyId>,
    #[serde(default)]
    pub(crate) is_default: bool,
}
