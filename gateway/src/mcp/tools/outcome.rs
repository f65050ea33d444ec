//! The result of a tool: text for the model, and the same as structured content for programs.

use cairn_chassis::feed::ChangeToken;
use cairn_chassis::status::Problem;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::change;
use crate::operations::{Page, Written};

/// User content, passed through unchanged.
const WRITTEN: [&str; 2] = ["values", "content"];

/// The result of a tool.
#[derive(Debug)]
pub(super) struct Outcome {
    texts: Vec<String>,
    structured: Option<Value>,
    /// The feed position of the tool's write.
    pub(super) change: Option<ChangeToken>,
    /// Instead of a result: the problem and the suggested next call.
    pub(super) refusal: Option<(Problem, String)>,
}

impl Outcome {
    /// Text only: a document, a guide.
    pub(super) fn text(text: String) -> Self {
        Self { texts: vec![text], structured: None, change: None, refusal: None }
    }

    /// A refusal with a better next call than the tool's default.
    pub(super) fn refused(problem: Problem, next: String) -> Self {
        Self { texts: Vec::new(), structured: None, change: None, refusal: Some((problem, next)) }
    }

    /// Appends a text block of our own, separate from the content.
    pub(super) fn followed_by(mut self, text: String) -> Self {
        self.texts.push(text);
        self
    }

    /// A text with its structured equivalent.
    pub(super) fn with_structure<T: Serialize>(text: String, structure: &T) -> Self {
        Self { structured: Some(without_nulls(as_value(structure))), ..Self::text(text) }
    }

    /// A composite result as text and structure.
    pub(super) fn answer<T: Serialize>(answer: &T) -> Self {
        let value = without_nulls(as_value(answer));
        let text = value.to_string();
        Self { structured: Some(value), ..Self::text(text) }
    }

    /// A record as text and structure, without empty fields.
    pub(super) fn record<T: Serialize>(record: &T) -> Self {
        let value = compact(as_value(record));
        let text = value.to_string();
        Self { structured: Some(value), ..Self::text(text) }
    }

    /// The record after a write.
    pub(super) fn written<T: Serialize>(written: Written<T>) -> Self {
        Self { change: Some(written.change), ..Self::record(&written.value) }
    }

    /// A list: an array as text (the spec's shape), an object as structure (clients require one). Both include how
    /// to continue, the text right after the array, since some clients show an agent only the first block.
    pub(super) fn list<T: Serialize>(name: &'static str, page: &Page<T>, more: Option<String>) -> Self {
        let items: Value = page.items.iter().map(|item| compact(as_value(item))).collect();
        let mut text = items.to_string();
        let note = more.map(|more| format!("Showing {} of {}; {more}", page.items.len(), page.total));
        let mut fields = Map::from_iter([(name.to_owned(), items), ("total".to_owned(), page.total.into())]);
        if let Some(note) = note {
            text = format!("{text}\n{note}");
            fields.insert("note".to_owned(), Value::String(note));
        }
        Self { structured: Some(Value::Object(fields)), ..Self::text(text) }
    }

    /// The ids of what was written, including nested items.
    pub(super) fn left(&self) -> impl Iterator<Item = &str> {
        ["id", "contentFileId"].into_iter().filter_map(|name| self.named(name))
    }

    /// The content hash of what was written, if it has content.
    pub(super) fn left_with_content(&self) -> Option<(&str, &str)> {
        self.named("id").zip(self.named("contentHash"))
    }

    fn named(&self, name: &str) -> Option<&str> {
        self.structured.as_ref()?.get(name)?.as_str()
    }

    pub(super) fn into_result(self) -> Map<String, Value> {
        let mut result = Map::new();
        result.insert("content".to_owned(), self.texts.into_iter().map(block).collect());
        if let Some(structured) = self.structured {
            result.insert("structuredContent".to_owned(), structured);
        }
        if let Some(token) = self.change {
            result.insert("_meta".to_owned(), json!({change::META: token.to_string()}));
        }
        result.insert("isError".to_owned(), Value::Bool(false));
        result
    }
}

/// The call for the next page: the same arguments with its cursor.
pub(super) fn go_on(tool: &str, same: &[(&str, Option<&str>)], cursor: Option<&String>) -> Option<String> {
    let cursor = cursor?;
    let given = same.iter().filter_map(|(name, value)| Some(((*name).to_owned(), Value::from((*value)?))));
    let mut arguments: Map<String, Value> = given.collect();
    arguments.insert("cursor".to_owned(), Value::from(cursor.as_str()));
    Some(format!("call {tool} again with {} for the next.", Value::Object(arguments)))
}

/// A text block of a result.
pub(super) fn block(text: impl Into<String>) -> Value {
    let fields = [("type", Value::from("text")), ("text", Value::String(text.into()))];
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Drops nulls, empty lists and empty texts: they cost tokens and carry no information.
pub(super) fn compact(value: Value) -> Value {
    without(value, |value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    })
}

fn without_nulls(value: Value) -> Value {
    without(value, Value::is_null)
}

fn without(value: Value, is_empty: fn(&Value) -> bool) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.into_iter().filter_map(|(name, value)| {
                if WRITTEN.contains(&name.as_str()) && !value.is_null() {
                    return Some((name, value));
                }
                let value = without(value, is_empty);
                (!is_empty(&value)).then_some((name, value))
            });
            Value::Object(kept.collect())
        }
        Value::Array(items) => items.into_iter().map(|item| without(item, is_empty)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

pub(super) fn as_value<T: Serialize>(value: &T) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_empty_is_left_out_but_for_values() {
        let record = json!({"a": null, "b": [], "c": "", "d": false, "content": "", "values": {"x": null}, "e": [{"f": null, "g": 0}]});
        assert_eq!(
            compact(record),
            json!({"d": false, "content": "", "values": {"x": null}, "e": [{"g": 0}]})
        );
    }

    #[test]
    fn a_list_says_how_to_go_on_in_both_forms() {
        let page =
            Page { items: vec![json!({"id": "a", "tags": []})], next: Some("p2".to_owned()), total: 3 };
        let more = go_on("list_files", &[("folderId", Some("f")), ("parentId", None)], page.next.as_ref());
        let result = Value::Object(Outcome::list("files", &page, more).into_result());
        let note =
            "Showing 1 of 3; call list_files again with {\"cursor\":\"p2\",\"folderId\":\"f\"} for the next.";
        assert_eq!(result["content"][0]["text"], json!(format!("[{{\"id\":\"a\"}}]\n{note}")));
        assert_eq!(result["structuredContent"]["note"], json!(note));
        let last = Page { next: None, ..page };
        let result =
            Value::Object(Outcome::list("files", &last, go_on("list_files", &[], None)).into_result());
        assert_eq!(result["structuredContent"], json!({"files": [{"id": "a"}], "total": 3}));
        assert_eq!(result["content"].as_array().map(Vec::len), Some(1));
    }
}
