//! What a tool gives: text for the model, structure for programs, and problems that teach the next call.

use cairn_chassis::status::{Problem, Reason};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::Tool;
use crate::change;
use crate::operations::{Page, Written};

/// Where clients look for a challenge inside of a tool's refusal.
const WWW_AUTHENTICATE: &str = "mcp/www_authenticate";

/// A tool's success.
#[derive(Debug)]
pub(super) struct Outcome {
    texts: Vec<String>,
    structured: Option<Value>,
    change: Option<String>,
}

impl Outcome {
    /// Text only: a document, a guide.
    pub(super) fn text(text: String) -> Self {
        Self { texts: vec![text], structured: None, change: None }
    }

    /// A text, and the same as a structure.
    pub(super) fn with_structure<T: Serialize>(text: String, structure: &T) -> Self {
        Self { structured: Some(as_value(structure)), ..Self::text(text) }
    }

    /// A record: the same as text and as structure.
    pub(super) fn record<T: Serialize>(record: &T) -> Self {
        let value = as_value(record);
        Self { texts: vec![value.to_string()], structured: Some(value), change: None }
    }

    /// A record that a write left.
    pub(super) fn written<T: Serialize>(written: Written<T>) -> Self {
        Self { change: Some(written.change), ..Self::record(&written.value) }
    }

    /// A list: an array as text (the spec's shape), an object as structure (clients want one). `narrower` says how
    /// to get at what is left out.
    pub(super) fn list<T: Serialize>(name: &'static str, page: &Page<T>, narrower: &str) -> Self {
        let items = as_value(&page.items);
        let mut texts = vec![items.to_string()];
        let shown = page.items.len();
        if u64::try_from(shown).is_ok_and(|shown| shown < page.total) {
            texts.push(format!("Showing {shown} of {}. {narrower}", page.total));
        }
        let structured = json!({name: items, "total": page.total});
        Self { texts, structured: Some(structured), change: None }
    }

    pub(super) fn into_result(self) -> Map<String, Value> {
        let mut result = Map::new();
        result.insert("content".to_owned(), self.texts.iter().map(|text| block(text)).collect());
        if let Some(structured) = self.structured {
            result.insert("structuredContent".to_owned(), structured);
        }
        if let Some(token) = self.change {
            result.insert("_meta".to_owned(), json!({change::META: token}));
        }
        result.insert("isError".to_owned(), Value::Bool(false));
        result
    }
}

/// A tool's refusal: what failed and why, every problem, and one call to make next.
pub(super) fn refusal(tool: &Tool, problem: &Problem, step_up: Option<&str>) -> Map<String, Value> {
    let mut lines = vec![format!("{}: {}", cause(problem.reason), problem.message)];
    if !problem.violations.is_empty() {
        let found = problem.violations.len();
        let plural = if found == 1 { "" } else { "s" };
        lines =
            vec![format!("{}: {found} problem{plural} in the call of {}.", cause(problem.reason), tool.name)];
        lines.extend(
            problem.violations.iter().map(|violation| format!("- {}: {}", violation.path, violation.message)),
        );
    }
    lines.push(format!("Next: {}", next_step(tool, problem)));
    let mut result = Map::new();
    result.insert("content".to_owned(), json!([block(&lines.join("\n"))]));
    result.insert("isError".to_owned(), Value::Bool(true));
    if let Some(challenge) = step_up.filter(|_| problem.reason == Reason::Forbidden) {
        result.insert("_meta".to_owned(), json!({WWW_AUTHENTICATE: [challenge]}));
    }
    result
}

/// The spec's words for causes (section 7), and words in their manner for the rest.
const fn cause(reason: Reason) -> &'static str {
    match reason {
        Reason::Unauthorized => "Unauthorized",
        Reason::Forbidden | Reason::OutOfScope | Reason::LimitExceeded => "Forbidden",
        Reason::NotFound => "Not found",
        Reason::ValidationError | Reason::PayloadTooLarge => "Validation error",
        Reason::VersionConflict
        | Reason::SlugTaken
        | Reason::IdempotencyConflict
        | Reason::RunBusy
        | Reason::RunNotStartable
        | Reason::AlreadyExists => "Conflict",
        Reason::RateLimited => "Rate limited",
        Reason::DeliveryFailed | Reason::Unavailable => "Unavailable",
        Reason::DeadlineExceeded => "Timeout",
        Reason::Unimplemented => "Not implemented",
        Reason::Internal => "Internal error",
    }
}

fn next_step(tool: &Tool, problem: &Problem) -> String {
    match problem.reason {
        Reason::ValidationError => {
            let schema = (tool.input)().schema();
            let required: Vec<&str> = schema
                .get("required")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            let needs = if required.is_empty() { "nothing".to_owned() } else { required.join(", ") };
            format!("call {} again with these put right. It requires: {needs}.", tool.name)
        }
        Reason::NotFound | Reason::OutOfScope => tool.recovery.to_owned(),
        Reason::Forbidden | Reason::LimitExceeded | Reason::Unauthorized => {
            "do not retry; tell the user what is missing, so that they can change the token.".to_owned()
        }
        Reason::Unavailable | Reason::RateLimited => {
            let wait = problem.retry_after.map_or(1, |wait| wait.as_secs().max(1));
            format!("call {} again after {wait} s with the same arguments.", tool.name)
        }
        Reason::PayloadTooLarge => "split the content into several smaller files.".to_owned(),
        Reason::VersionConflict
        | Reason::SlugTaken
        | Reason::IdempotencyConflict
        | Reason::RunBusy
        | Reason::RunNotStartable
        | Reason::AlreadyExists => "read the present state, then decide whether to call again.".to_owned(),
        Reason::DeadlineExceeded | Reason::DeliveryFailed | Reason::Unimplemented | Reason::Internal => {
            format!("call {} once more; if it fails again, tell the user.", tool.name)
        }
    }
}

fn block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn as_value<T: Serialize>(value: &T) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}
