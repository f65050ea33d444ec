//! Accessors for properties and records of a database.

use cairn_proto::domain::PropertyType;
use serde_json::Value;

use crate::answers::{Property, Record};

/// The type of a property.
pub(super) fn kind_of(property: &Property) -> PropertyType {
    PropertyType::from_number(property.r#type).unwrap_or_default()
}

/// The names of its options, in order.
pub(super) fn options(property: &Property) -> impl Iterator<Item = &str> {
    property.config.iter().flat_map(|config| &config.options).map(|option| option.name.as_str())
}

/// The value of a record's property.
pub(super) fn value_of<'a>(record: &'a Record, property: &Property) -> Option<&'a Value> {
    record.values.get(&property.id)
}

/// The title of a record, with a fallback.
pub(super) fn title_of(record: &Record) -> &str {
    if record.title.trim().is_empty() { "Untitled" } else { &record.title }
}

/// The form field name of a property.
pub(super) fn field_name(property: &Property) -> String {
    format!("v-{}", property.id)
}

/// A value as text: elements separated by commas.
pub(super) fn as_text(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Bool(true)) => "yes".to_owned(),
        Some(Value::Bool(false)) => "no".to_owned(),
        Some(Value::Array(elements)) => {
            elements.iter().map(|element| as_text(Some(element))).collect::<Vec<_>>().join(", ")
        }
        Some(other) => other.to_string(),
    }
}

/// The texts of a value or its elements.
pub(super) fn elements(value: Option<&Value>) -> Vec<&str> {
    match value {
        Some(Value::String(text)) => vec![text],
        Some(Value::Array(elements)) => elements.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}
