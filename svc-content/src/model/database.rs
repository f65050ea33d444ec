//! Databases.

use cairn_chassis::clock::Timestamp;
use cairn_proto::ids::{DatabaseId, FolderId, PropertyId, WorkspaceId};
use serde_json::Value;

use super::{Property, Values, View};

/// A database.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Database {
    pub(crate) id: DatabaseId,
    pub(crate) workspace_id: WorkspaceId,
    /// The folder it is in, or was in before it went to trash.
    pub(crate) folder_id: Option<FolderId>,
    /// From the root to that folder, while it is live.
    pub(crate) folders: Vec<FolderId>,
    pub(crate) path: String,
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) icon: Option<String>,
    /// In their order.
    pub(crate) properties: Vec<Property>,
    /// In their order.
    pub(crate) views: Vec<View>,
    pub(crate) record_count: u64,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
    pub(crate) deleted_at: Option<Timestamp>,
}

impl Database {
    /// The property with that id.
    pub(crate) fn property(&self, id: PropertyId) -> Option<&Property> {
        self.properties.iter().find(|property| property.id == id)
    }

    /// The property that is the title of records.
    pub(crate) fn primary(&self) -> Option<&Property> {
        self.properties.iter().find(|property| property.is_primary)
    }

    /// The title of a record: the value of its primary property.
    pub(crate) fn title_of(&self, values: &Values) -> String {
        let value = self.primary().and_then(|primary| values.get(&primary.id.to_string()));
        value.and_then(Value::as_str).unwrap_or_default().to_owned()
    }
}
