//! The properties of a database: ten types, each with its settings.

use cairn_proto::ids::{DatabaseId, PropertyId};
use serde::{Deserialize, Serialize};

use super::{PropertyType, fold};

/// An option of a select.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PropertyOption {
    pub(crate) id: String,
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) color: String,
}

/// The settings of a type.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PropertySettings {
    #[serde(default)]
    pub(crate) options: Vec<PropertyOption>,
    #[serde(default)]
    pub(crate) multiple: bool,
    #[serde(default)]
    pub(crate) relation_database_id: Option<DatabaseId>,
}

/// A typed column of a database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Property {
    pub(crate) id: PropertyId,
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) kind: PropertyType,
    #[serde(default)]
    pub(crate) is_primary: bool,
    #[serde(default)]
    pub(crate) config: PropertySettings,
}

impl Property {
    /// The option with that id.
    pub(crate) fn option(&self, id: &str) -> Option<&PropertyOption> {
        self.config.options.iter().find(|option| option.id == id)
    }

    /// The option with that id or name.
    pub(crate) fn option_named(&self, text: &str) -> Option<&PropertyOption> {
        let by_name = || self.config.options.iter().find(|option| option.name == text);
        let folded = || {
            let wanted = fold(text);
            self.config.options.iter().find(|option| fold(&option.name) == wanted)
        };
        self.option(text).or_else(by_name).or_else(folded)
    }

    /// The position of an option, which orders its records.
    pub(crate) fn option_place(&self, id: &str) -> Option<usize> {
        self.config.options.iter().position(|option| option.id == id)
    }

    /// The names of the options, for an error message.
    pub(crate) fn choices(&self) -> String {
        let names: Vec<&str> = self.config.options.iter().map(|option| option.name.as_str()).collect();
        if names.is_empty() { "there are no options yet".to_owned() } else { names.join(", ") }
    }
}
