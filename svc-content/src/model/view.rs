//! Saved views of a database.

use cairn_proto::ids::{PropertyId, ViewId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A condition of a view.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ViewFilter {
    pub(crate) field_id: String,
    pub(crate) operator: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) value: Option<Value>,
}

impl ViewFilter {
    /// The condition as a filter tree has it.
    pub(crate) fn to_tree(&self) -> Value {
        let mut tree = serde_json::json!({"fieldId": self.field_id, "operator": self.operator});
        if let (Some(value), Some(fields)) = (&self.value, tree.as_object_mut()) {
            fields.insert("value".to_owned(), value.clone());
        }
        tree
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
