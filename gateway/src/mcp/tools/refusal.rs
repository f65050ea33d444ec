//! Refusals of tools: the cause in the spec's words, all violations, and one call to make next.

use std::collections::BTreeSet;

use cairn_chassis::status::{Problem, Reason, Violation};
use cairn_chassis::wording::{self, Unit};
use serde_json::{Map, Value, json};

use super::arguments::meant;
use super::outcome::block;
use super::{Tool, length};

/// Where clients look for a challenge inside of a tool's refusal.
const WWW_AUTHENTICATE: &str = "mcp/www_authenticate";
/// The placeholder in a recovery for the name that the caller knows.
const NAME: &str = "{name}";
/// Longer values are replaced by an ellipsis.
const MAX_SHOWN_LENGTH: usize = 60;
/// Values above this are not retained for a refusal; far above what is shown.
const MAX_RETAINED_BYTES: usize = 1024;

/// The arguments as needed for a refusal, without large values: a call may carry the text of a file.
pub(super) fn sketch(given: &Map<String, Value>) -> Map<String, Value> {
    let sketched = |value: &Value| match value {
        Value::String(text) if text.len() <= MAX_RETAINED_BYTES => value.clone(),
        Value::Array(_) | Value::Object(_) if length(value) <= MAX_RETAINED_BYTES => value.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        Value::String(_) | Value::Array(_) | Value::Object(_) => Value::from("…".repeat(MAX_RETAINED_BYTES)),
    };
    given.iter().map(|(name, value)| (name.clone(), sketched(value))).collect()
}

/// The result of a refused call. `given` is a sketch of its arguments.
pub(super) fn refused(
    tool: &Tool,
    given: &Map<String, Value>,
    problem: &Problem,
    next: Option<&str>,
    step_up: Option<&str>,
) -> Map<String, Value> {
    let mut lines = vec![format!("{}: {}", cause(problem.reason), problem.message)];
    if !problem.violations.is_empty() {
        let found = problem.violations.len();
        let found = wording::count(found as u64, Unit::Problems);
        lines = vec![format!("{}: {found} in the call of {}.", cause(problem.reason), tool.name)];
        lines.extend(
            problem.violations.iter().map(|violation| format!("- {}: {}", violation.path, violation.message)),
        );
    }
    let next = next.map_or_else(|| next_step(tool, given, problem), ToOwned::to_owned);
    lines.push(format!("Next: {next}"));
    let mut result = Map::new();
    result.insert("content".to_owned(), Value::from(vec![block(lines.join("\n"))]));
    result.insert("isError".to_owned(), Value::Bool(true));
    if let Some(challenge) = step_up.filter(|_| problem.reason == Reason::Forbidden) {
        result.insert("_meta".to_owned(), json!({WWW_AUTHENTICATE: [challenge]}));
    }
    result
}

/// The spec's words for causes (section 7), and similar ones for the rest.
pub(super) const fn cause(reason: Reason) -> &'static str {
    match reason {
        Reason::Unauthorized => "Unauthorized",
        Reason::Forbidden | Reason::OutOfScope | Reason::LimitExceeded => "Forbidden",
        Reason::NotFound | Reason::Gone => "Not found",
        Reason::ValidationError | Reason::PayloadTooLarge => "Validation error",
        Reason::VersionConflict
        | Reason::SlugTaken
        | Reason::IdempotencyConflict
        | Reason::RunBusy
        | Reason::RunNotStartable
        | Reason::RunNotRevertible
        | Reason::RunNotCancellable
        | Reason::AlreadyExists => "Conflict",
        Reason::RateLimited => "Rate limited",
        Reason::DeliveryFailed | Reason::Unavailable => "Unavailable",
        Reason::DeadlineExceeded => "Timeout",
        Reason::Unimplemented => "Not implemented",
        Reason::Internal => "Internal error",
    }
}

fn next_step(tool: &Tool, given: &Map<String, Value>, problem: &Problem) -> String {
    match problem.reason {
        Reason::ValidationError => match name_for_an_id(given, &problem.violations) {
            Some(name) if tool.recovery.contains(NAME) => recovery(tool, Some(name)),
            _ => match corrected(tool, given, &problem.violations) {
                Some(arguments) => format!("call {} with {arguments}", tool.name),
                None => format!("correct what is named above, then call {} again.", tool.name),
            },
        },
        Reason::Gone => format!("call {} without asOf for what is there now.", tool.name),
        Reason::NotFound | Reason::OutOfScope => recovery(tool, None),
        Reason::Forbidden | Reason::LimitExceeded | Reason::Unauthorized => {
            "do not retry; tell the user what is missing, so that they can change the token.".to_owned()
        }
        Reason::Unavailable | Reason::RateLimited => {
            let wait = problem.retry_after.map_or(1, |wait| wait.as_secs().max(1));
            format!("call {} again after {wait} s with the same arguments.", tool.name)
        }
        Reason::PayloadTooLarge => {
            format!("call {} with less at once; a long text can be several smaller files.", tool.name)
        }
        Reason::VersionConflict
        | Reason::SlugTaken
        | Reason::IdempotencyConflict
        | Reason::RunBusy
        | Reason::RunNotStartable
        | Reason::RunNotRevertible
        | Reason::RunNotCancellable
        | Reason::AlreadyExists => "read the present state, then decide whether to call again.".to_owned(),
        Reason::DeadlineExceeded | Reason::DeliveryFailed | Reason::Unimplemented | Reason::Internal => {
            format!("call {} once more; if it fails again, tell the user.", tool.name)
        }
    }
}

fn recovery(tool: &Tool, name: Option<&str>) -> String {
    tool.recovery.replace(NAME, name.unwrap_or("<part of its name>"))
}

/// The value given for an id, if it looks like a name.
fn name_for_an_id<'a>(given: &'a Map<String, Value>, violations: &[Violation]) -> Option<&'a str> {
    let wrong = violations.iter().find(|violation| violation.code == "invalid_id")?;
    let value = given.iter().find(|(name, _)| meant(name, &wrong.path))?.1.as_str()?.trim();
    let is_plain = |letter: char| !letter.is_control() && letter != '"' && letter != '\\';
    let is_name =
        !value.is_empty() && value.chars().count() <= MAX_SHOWN_LENGTH && value.chars().all(is_plain);
    is_name.then(|| value.rsplit('/').next().unwrap_or(value)).filter(|name| !name.is_empty())
}

/// The call's arguments with invalid ones replaced by plausible values; `None` if that would repeat the same call.
fn corrected(tool: &Tool, given: &Map<String, Value>, violations: &[Violation]) -> Option<Value> {
    let schema = (tool.input)().schema();
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let wrong: BTreeSet<&str> =
        violations.iter().filter_map(|one| one.path.split(['.', '[']).next()).collect();
    let mut arguments = Map::new();
    let mut is_other = false;
    for (name, described) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let kept = given.iter().find(|(known, _)| meant(known, name)).map(|(_, value)| value);
        let is_wrong = wrong.contains(name.as_str());
        match kept {
            Some(value) if !is_wrong => {
                arguments.insert(name.clone(), shortened(value));
            }
            _ if required.contains(&name.as_str()) || is_wrong => {
                let example = example(name, described, kept);
                is_other |= kept != Some(&example);
                arguments.insert(name.clone(), example);
            }
            _ => {}
        }
    }
    // Dropping an argument that the tool does not have makes it a different call.
    let is_known = |name: &String| arguments.keys().any(|known| meant(name, known));
    is_other |= given.keys().any(|name| !is_known(name));
    is_other.then_some(Value::Object(arguments))
}

fn shortened(value: &Value) -> Value {
    let is_long = match value {
        Value::String(text) => text.chars().nth(MAX_SHOWN_LENGTH).is_some(),
        Value::Array(_) | Value::Object(_) => value.to_string().len() > 2 * MAX_SHOWN_LENGTH,
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    };
    if is_long { Value::from("…") } else { value.clone() }
}

/// A plausible value of an argument, close to the one given.
fn example(name: &str, described: &Value, given: Option<&Value>) -> Value {
    let number = given.and_then(Value::as_f64);
    let bound = |bound: &str| described.get(bound).filter(|value| value.is_number()).cloned();
    let is_beyond = |limit: &Value, over: bool| match (number, limit.as_f64()) {
        (Some(number), Some(limit)) => (number > limit) == over && number != limit,
        _ => false,
    };
    if let Some(most) = bound("maximum").filter(|most| is_beyond(most, true)) {
        return most;
    }
    if let Some(least) = bound("minimum").filter(|least| is_beyond(least, false)) {
        return least;
    }
    let first =
        |list: &str| described.get(list).and_then(Value::as_array).and_then(|list| list.first()).cloned();
    let default = || described.get("default").filter(|value| !value.is_null()).cloned();
    let known = first("examples").or_else(default).or_else(|| first("enum")).or_else(|| bound("minimum"));
    known.filter(|known| given != Some(known)).unwrap_or_else(|| match kind(described) {
        Some("array") => json!([format!("<{name}>")]),
        Some("object") => json!({}),
        Some("boolean") => Value::Bool(true),
        _ => Value::from(format!("<{name}>")),
    })
}

/// The type of an argument, ignoring null.
fn kind(described: &Value) -> Option<&str> {
    let kinds = described.get("type")?;
    match kinds.as_array() {
        Some(several) => several.iter().filter_map(Value::as_str).find(|kind| *kind != "null"),
        None => kinds.as_str(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::tools::TOOLS;

    fn said(name: &str, given: Value, problem: &Problem) -> String {
        let tool = TOOLS.iter().find(|tool| tool.name == name).unwrap();
        let result = refused(tool, given.as_object().unwrap(), problem, None, None);
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    fn wrong(path: &str, code: &str) -> Problem {
        Problem::validation(vec![Violation::new(path, code, "is wrong")])
    }

    #[test]
    fn the_next_call_keeps_what_is_right() {
        let given = json!({"name": "a.md", "content": "x".repeat(200), "file_type": "markdwn"});
        let text = said("create_file", given, &wrong("fileType", "invalid_value"));
        assert!(text.starts_with("Validation error: 1 problem in the call of create_file."), "{text}");
        let call =
            "Next: call create_file with {\"content\":\"…\",\"fileType\":\"markdown\",\"name\":\"a.md\"}";
        assert!(text.ends_with(call), "{text}");
        let text = said("search_context", json!({"query": "x", "limit": 51}), &wrong("limit", "too_large"));
        assert!(text.ends_with("{\"limit\":50,\"query\":\"x\"}"), "{text}");
    }

    #[test]
    fn the_next_call_is_never_the_one_that_failed() {
        let given = json!({"databaseId": "d", "recordId": "r", "contentFileId": null});
        let text = said("update_database_record", given, &wrong("contentFileId", "not_found"));
        assert!(text.contains("\"contentFileId\":\"<contentFileId>\""), "{text}");
        let text = said("list_files", json!({"cursor": "c"}), &wrong("elsewhere", "invalid"));
        assert!(text.ends_with("Next: correct what is named above, then call list_files again."), "{text}");
        let text = said("list_files", json!({"nonsense": 1}), &wrong("nonsense", "unknown_field"));
        assert!(text.ends_with("Next: call list_files with {}"), "{text}");
    }

    #[test]
    fn a_name_in_the_place_of_an_id_is_looked_for() {
        let text = said("get_file", json!({"fileId": "/docs/Onboarding.md"}), &wrong("id", "invalid_id"));
        assert!(text.contains("search_files with {\"query\": \"Onboarding.md\"}"), "{text}");
        let text = said("get_file", json!({"id": "a\"b"}), &wrong("id", "invalid_id"));
        assert!(text.contains("call get_file with"), "{text}");
    }

    #[test]
    fn every_cause_has_a_next_step() {
        for reason in
            [Reason::NotFound, Reason::OutOfScope, Reason::Forbidden, Reason::Unavailable, Reason::Internal]
        {
            let text = said("get_file", json!({"id": "x"}), &Problem::new(reason, "why"));
            assert!(text.starts_with(cause(reason)) && text.contains("\nNext: "), "{text}");
            assert!(!text.contains('{') || !text.contains("{name}"), "{text}");
        }
    }
}
