//! Property values: validation by type, rendering for callers, and rendering as searchable text.

use cairn_chassis::json::{self, Unreadable};
use cairn_chassis::wording::{self, Unit};
use cairn_proto::ids::PropertyId;
use serde_json::Value;

use crate::checks::Checks;
use crate::model::{Database, Day, Property, PropertyType, Values};

const MAX_TEXT_CHARS: usize = 100_000;
const MAX_URL_CHARS: usize = 10_000;
const MAX_ELEMENTS: usize = 500;

/// A referenced id, with its path in the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reference {
    pub(crate) path: String,
    pub(crate) property: PropertyId,
    pub(crate) id: String,
}

/// Validated values of a request.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ValueChanges {
    /// `None` clears.
    pub(crate) values: Vec<(PropertyId, Option<Value>)>,
    pub(crate) references: Vec<Reference>,
}

impl ValueChanges {
    /// Parses a JSON object and collects all violations.
    pub(crate) fn read(checks: &mut Checks, database: &Database, text: &str, allow_names: bool) -> Self {
        let mut changes = Self::default();
        if text.is_empty() {
            return changes;
        }
        let fields = match json::read(text.as_bytes()) {
            Ok(Value::Object(fields)) => fields,
            Err(too_many @ Unreadable::TooMany) => {
                checks.violation("values", "too_many", too_many.to_string());
                return changes;
            }
            Ok(_) | Err(Unreadable::Invalid(_)) => {
                checks.violation("values", "wrong_type", "must be an object of property ids and values");
                return changes;
            }
        };
        for (key, value) in fields {
            let path = format!("values.{key}");
            let Some(property) = database.find(checks, &path, &key, allow_names) else { continue };
            if changes.values.iter().any(|(id, _)| *id == property.id) {
                checks.violation(&path, "duplicate", "the property is named twice");
                continue;
            }
            let mut reader = ValueReader { checks: &mut *checks, property, path, references: Vec::new() };
            let kept = reader.value(value);
            let references = reader.references;
            changes.references.extend(references);
            changes.values.push((property.id, kept));
        }
        changes
    }

    /// Merges the changes into existing values.
    pub(crate) fn merge(&self, values: &mut Values) {
        for (property, value) in &self.values {
            match value {
                Some(value) => values.insert(property.to_string(), value.clone()),
                None => values.remove(&property.to_string()),
            };
        }
    }
}

struct ValueReader<'a> {
    checks: &'a mut Checks,
    property: &'a Property,
    path: String,
    references: Vec<Reference>,
}

impl ValueReader<'_> {
    /// The value as it is stored; `None` if it is null or invalid.
    fn value(&mut self, value: Value) -> Option<Value> {
        if value.is_null() {
            return None;
        }
        match self.property.kind {
            PropertyType::Text => self.text(value, MAX_TEXT_CHARS),
            PropertyType::Url => self.url(value),
            PropertyType::Number if value.is_number() => Some(value),
            PropertyType::Number => self.refuse("wrong_type", "must be a number"),
            PropertyType::Boolean if value.is_boolean() => Some(value),
            PropertyType::Boolean => self.refuse("wrong_type", "must be true or false"),
            PropertyType::Date => self.date(value),
            PropertyType::Select => self.option(&value),
            PropertyType::MultiSelect => self.options(value),
            PropertyType::Relation => self.references(value, true),
            PropertyType::FileReference | PropertyType::AssetReference => {
                self.references(value, self.property.config.multiple)
            }
        }
    }

    fn refuse(&mut self, code: &str, message: &str) -> Option<Value> {
        self.checks.violation(&self.path, code, message);
        None
    }

    fn text(&mut self, value: Value, max: usize) -> Option<Value> {
        let Value::String(text) = value else {
            return self.refuse("wrong_type", "must be a text");
        };
        if text.chars().count() > max {
            return self.refuse("too_long", &wording::at_most(max, Unit::Characters));
        }
        if text.contains('\0') {
            return self.refuse("invalid", wording::NO_NUL);
        }
        Some(Value::String(text))
    }

    fn url(&mut self, value: Value) -> Option<Value> {
        let kept = self.text(value, MAX_URL_CHARS)?;
        if kept.as_str().is_some_and(is_web_address) {
            return Some(kept);
        }
        self.refuse("invalid_url", "must be an absolute address that begins with http:// or https://")
    }

    fn date(&mut self, value: Value) -> Option<Value> {
        let is_date = value.as_str().is_some_and(|text| Day::read(text).is_some());
        if is_date {
            return Some(value);
        }
        self.refuse(
            "invalid_date",
            "must be a date such as 2026-11-20, or a time such as 2026-11-20T12:00:00Z",
        )
    }

    fn option(&mut self, value: &Value) -> Option<Value> {
        let found = value.as_str().and_then(|text| self.property.option_named(text));
        if let Some(option) = found {
            return Some(Value::String(option.id.clone()));
        }
        let message = format!("must be one of the options: {}", self.property.choices());
        self.refuse("unknown_option", &message)
    }

    fn options(&mut self, value: Value) -> Option<Value> {
        let elements = self.elements(value, true)?;
        let mut kept: Vec<Value> = Vec::with_capacity(elements.len());
        let whole = self.path.clone();
        for (place, element) in elements.iter().enumerate() {
            self.path = format!("{whole}[{place}]");
            if let Some(option) = self.option(element)
                && !kept.contains(&option)
            {
                kept.push(option);
            }
        }
        self.path = whole;
        Some(Value::Array(kept)).filter(|kept| kept.as_array().is_some_and(|kept| !kept.is_empty()))
    }

    fn references(&mut self, value: Value, may_be_several: bool) -> Option<Value> {
        let is_list = value.is_array();
        if is_list && !may_be_several {
            return self.refuse("wrong_type", "must be one id: the property's config.multiple is not set");
        }
        let elements = self.elements(value, false)?;
        let mut kept: Vec<Value> = Vec::with_capacity(elements.len());
        for (place, element) in elements.into_iter().enumerate() {
            let path = if is_list { format!("{}[{place}]", self.path) } else { self.path.clone() };
            let id: Option<PropertyId> = element.as_str().and_then(|text| text.parse().ok());
            let Some(id) = id.map(|id| id.to_string()) else {
                self.checks.violation(&path, "invalid_id", wording::ID);
                continue;
            };
            let value = Value::String(id.clone());
            if !kept.contains(&value) {
                self.references.push(Reference { path, property: self.property.id, id });
                kept.push(value);
            }
        }
        if is_list { Some(Value::Array(kept)).filter(has_elements) } else { kept.pop() }
    }

    fn elements(&mut self, value: Value, must_be_list: bool) -> Option<Vec<Value>> {
        let elements = match value {
            Value::Array(elements) => elements,
            _ if must_be_list => {
                let message = format!("must be a list of options: {}", self.property.choices());
                self.refuse("wrong_type", &message);
                return None;
            }
            one @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_)) => {
                vec![one]
            }
        };
        if elements.len() > MAX_ELEMENTS {
            self.refuse("too_many", &wording::at_most(MAX_ELEMENTS, Unit::Entries));
            return None;
        }
        Some(elements)
    }
}

fn has_elements(value: &Value) -> bool {
    value.as_array().is_some_and(|elements| !elements.is_empty())
}

/// Whether a text is an absolute HTTP or HTTPS URL.
pub(super) fn is_web_address(text: &str) -> bool {
    let lower = text.get(..8).unwrap_or(text).to_ascii_lowercase();
    let rest = if lower.starts_with("https://") {
        text.get(8..)
    } else if lower.starts_with("http://") {
        text.get(7..)
    } else {
        None
    };
    let Some(rest) = rest else { return false };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    !host.is_empty()
        && !host.starts_with(':')
        && !text.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// Values as callers see them: only of live properties, options by name, without hidden references.
pub(crate) fn shown(
    database: &Database,
    values: &Values,
    is_visible: impl Fn(PropertyType, &str) -> bool,
) -> Values {
    let mut shown = Values::new();
    for property in &database.properties {
        let key = property.id.to_string();
        let Some(value) = values.get(&key) else { continue };
        let show = |element: &Value| match element.as_str() {
            Some(id) if property.kind.has_options() => {
                property.option(id).map(|option| Value::String(option.name.clone()))
            }
            Some(id) if property.kind.is_reference() && !is_visible(property.kind, id) => None,
            _ => Some(element.clone()),
        };
        let value = match value.as_array() {
            Some(elements) => Some(Value::Array(elements.iter().filter_map(show).collect())),
            None => show(value),
        };
        shown.extend(value.map(|value| (key, value)));
    }
    shown
}

/// A record as a document for search: a line per field, then its body. References are omitted, as a caller who may read the
/// record may not be allowed to see their targets.
pub(crate) fn rendered(database: &Database, values: &Values, body: Option<&str>) -> String {
    let visible = shown(database, values, |_, _| false);
    let mut text = String::new();
    for property in &database.properties {
        if let Some(value) = visible.get(&property.id.to_string()) {
            let line = as_text(value);
            if !line.is_empty() {
                text.push_str(&format!("{}: {line}\n", property.name));
            }
        }
    }
    if let Some(body) = body {
        text.push('\n');
        text.push_str(body);
    }
    text
}

fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(elements) => elements.iter().map(as_text).collect::<Vec<_>>().join(", "),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Number(_) | Value::Object(_) => value.to_string(),
        Value::Null => String::new(),
    }
}
