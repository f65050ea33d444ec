//! Filters of records, in JSON and protobuf.

use serde_json::{Map, Value};

use super::Operator;
use super::limits::FILTER_LEVELS;
use crate::content::v1 as content;
use crate::content::v1::filter::Tree;

/// A tree of conditions, not yet validated against a database.
#[derive(Debug, Clone, PartialEq)]
pub enum Filter {
    /// All of these hold; an empty list matches every record.
    All(Vec<Self>),
    /// At least one of these holds.
    Any(Vec<Self>),
    /// One condition.
    Is(Condition),
}

/// A condition on the value of one property.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Condition {
    /// The property's id, or its name if the caller may use names.
    pub field_id: String,
    /// `None` if unknown.
    pub operator: Option<Operator>,
    /// `None` for an operator without operand.
    pub value: Option<Value>,
}

/// A parse error at a path of the JSON tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misread {
    /// Such as `filter.and[2]`.
    pub path: String,
    /// As in the errors of the contract: `wrong_type`, `invalid`, `unknown_field` or `too_deep`.
    pub code: &'static str,
    /// What is expected there.
    pub message: String,
}

impl Misread {
    fn new(path: &str, code: &'static str, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), code, message: message.into() }
    }

    /// The error of a filter that is nested too deeply.
    pub fn too_deep(path: &str) -> Self {
        let message = format!("filters nest at most {FILTER_LEVELS} levels deep");
        Self::new(path, "too_deep", message)
    }
}

impl Filter {
    /// Parses `{"and": […]}`, `{"or": […]}` and `{"fieldId", "operator", "value"}` at `path`; `{}` matches every record.
    /// Whether the property and the operator exist is checked against the database later.
    ///
    /// # Errors
    /// All parse errors.
    pub fn read(tree: &Value, path: &str) -> Result<Self, Vec<Misread>> {
        if tree.as_object().is_some_and(Map::is_empty) {
            return Ok(Self::All(Vec::new()));
        }
        let mut misread = Vec::new();
        let filter = read(tree, path, 0, &mut misread);
        filter.filter(|_| misread.is_empty()).ok_or(misread)
    }
}

fn read(tree: &Value, path: &str, level: usize, misread: &mut Vec<Misread>) -> Option<Filter> {
    if level >= FILTER_LEVELS {
        misread.push(Misread::too_deep(path));
        return None;
    }
    let Some(fields) = tree.as_object() else {
        let message = "must be {\"and\": […]}, {\"or\": […]} or {\"fieldId\", \"operator\", \"value\"}";
        misread.push(Misread::new(path, "wrong_type", message));
        return None;
    };
    for (name, is_all) in [("and", true), ("or", false)] {
        let Some(branches) = fields.get(name) else { continue };
        if fields.len() > 1 {
            let message = format!("'{name}' stands alone: nest other conditions in it");
            misread.push(Misread::new(path, "invalid", message));
            return None;
        }
        return read_all(branches, &format!("{path}.{name}"), level + 1, misread).map(if is_all {
            Filter::All
        } else {
            Filter::Any
        });
    }
    read_condition(fields, path, misread)
}

fn read_all(branches: &Value, path: &str, level: usize, misread: &mut Vec<Misread>) -> Option<Vec<Filter>> {
    let Some(branches) = branches.as_array() else {
        misread.push(Misread::new(path, "wrong_type", "must be a list of filters"));
        return None;
    };
    let branches = branches.iter().enumerate();
    // Parses every branch, so that all errors are reported at once.
    let branches = branches.map(|(place, branch)| read(branch, &format!("{path}[{place}]"), level, misread));
    let read: Vec<_> = branches.collect();
    read.into_iter().collect()
}

fn read_condition(fields: &Map<String, Value>, path: &str, misread: &mut Vec<Misread>) -> Option<Filter> {
    let is_strange = |name: &&String| !matches!(name.as_str(), "fieldId" | "operator" | "value");
    if let Some(name) = fields.keys().find(is_strange) {
        let message = "is not known; a condition has fieldId, operator and value";
        misread.push(Misread::new(&format!("{path}.{name}"), "unknown_field", message));
        return None;
    }
    let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
    Some(Filter::Is(Condition {
        field_id: text("fieldId").to_owned(),
        operator: text("operator").parse().ok(),
        value: fields.get("value").cloned(),
    }))
}

impl From<Condition> for content::Condition {
    fn from(condition: Condition) -> Self {
        Self {
            field_id: condition.field_id,
            operator: condition.operator.map(Operator::number).unwrap_or_default(),
            value_json: condition.value.map(|value| value.to_string()),
        }
    }
}

impl From<Filter> for content::Filter {
    fn from(filter: Filter) -> Self {
        let branches = |filters: Vec<Filter>| content::Filters {
            filters: filters.into_iter().map(Self::from).collect(),
        };
        let tree = match filter {
            Filter::All(filters) => Tree::All(branches(filters)),
            Filter::Any(filters) => Tree::Any(branches(filters)),
            Filter::Is(condition) => Tree::Condition(condition.into()),
        };
        Self { tree: Some(tree) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tree_is_read_as_it_stands() {
        let tree = json!({"or": [
            {"fieldId": "Points", "operator": "gte", "value": 5},
            {"and": [{"fieldId": "Done", "operator": "is_empty"}, {"fieldId": "Tags", "operator": "like", "value": ["a"]}]},
        ]});
        let read = Filter::read(&tree, "filter").unwrap();
        let Filter::Any(branches) = &read else { panic!("{read:?}") };
        assert_eq!(branches.len(), 2);
        let points =
            Condition { field_id: "Points".to_owned(), operator: Some(Operator::Gte), value: Some(json!(5)) };
        assert_eq!(branches[0], Filter::Is(points));
        let Filter::All(inner) = &branches[1] else { panic!("{branches:?}") };
        let unknown = Condition { field_id: "Tags".to_owned(), operator: None, value: Some(json!(["a"])) };
        assert_eq!(inner[1], Filter::Is(unknown));
        assert_eq!(Filter::read(&json!({}), "filter"), Ok(Filter::All(Vec::new())));
    }

    #[test]
    fn all_that_is_no_filter_is_said_with_its_place() {
        let tree = json!({"and": [
            1,
            {"and": [], "fieldId": "x"},
            {"or": {}},
            {"fieldId": "x", "operator": "equals", "valeu": 1},
            {"and": [{"fieldId": "x", "operator": "equals", "value": 1}, null]},
        ]});
        let misread = Filter::read(&tree, "filter").unwrap_err();
        let found: Vec<_> = misread.iter().map(|one| (one.path.as_str(), one.code)).collect();
        assert_eq!(
            found,
            [
                ("filter.and[0]", "wrong_type"),
                ("filter.and[1]", "invalid"),
                ("filter.and[2].or", "wrong_type"),
                ("filter.and[3].valeu", "unknown_field"),
                ("filter.and[4].and[1]", "wrong_type"),
            ]
        );
    }
}
